"""NCCL's calls without PyTorch, by ctypes.

    calls.py one                    one thread with three devices; prints what each got
    calls.py rank ID RANK WORLD DO  one rank of WORLD, DO of: sum, ahead, other, leave, alone, die, split, cycle,
                                    fork (a child ends before the others come)
    calls.py id                     prints a new ID
"""

import ctypes
import os
import pathlib
import signal
import sys
import threading

FLOAT, INT64, SUM = 7, 4, 0
cuda = ctypes.CDLL("libcudart.so.13")
nccl = ctypes.CDLL("libnccl.so.2")
pointer = ctypes.c_void_p


class Id(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 128)]


def check(status):
    if status:
        nccl.ncclGetLastError.restype = ctypes.c_char_p
        print("status", status, nccl.ncclGetLastError(None).decode(), flush=True)
        sys.exit(3)


class Device:
    """A device with a stream and 4 numbers."""

    def __init__(self, ordinal, values=(0, 0, 0, 0)):
        self.ordinal, self.stream, self.memory = ordinal, pointer(), pointer()
        self.use()
        check(cuda.cudaStreamCreateWithFlags(ctypes.byref(self.stream), 1))
        check(cuda.cudaMalloc(ctypes.byref(self.memory), ctypes.c_size_t(1 << 20)))
        self.write(values)

    def use(self):
        check(cuda.cudaSetDevice(self.ordinal))

    def write(self, values):
        host = (ctypes.c_int64 * len(values))(*values)
        check(cuda.cudaMemcpy(self.memory, host, ctypes.c_size_t(ctypes.sizeof(host)), 1))

    def read(self, count=4):
        host = (ctypes.c_int64 * count)()
        check(cuda.cudaMemcpyAsync(host, self.memory, ctypes.c_size_t(ctypes.sizeof(host)), 2, self.stream))
        check(cuda.cudaStreamSynchronize(self.stream))
        return list(host)

    def wait(self):
        return cuda.cudaStreamSynchronize(self.stream)


def all_reduce(comm, device, count=4, kind=INT64):
    device.use()
    return nccl.ncclAllReduce(device.memory, device.memory, ctypes.c_size_t(count), kind, SUM, comm, device.stream)


def send(comm, device, peer, count=4):
    return nccl.ncclSend(device.memory, ctypes.c_size_t(count), INT64, peer, comm, device.stream)


def receive(comm, device, peer, count=4):
    return nccl.ncclRecv(device.memory, ctypes.c_size_t(count), INT64, peer, comm, device.stream)


def one():
    devices = [Device(i, [i, 10 * i, 1, 0]) for i in range(3)]
    comms = (pointer * 3)()
    check(nccl.ncclCommInitAll(comms, 3, None))
    comms = [pointer(each) for each in comms]
    check(nccl.ncclGroupStart())
    for comm, device in zip(comms, devices):
        check(all_reduce(comm, device))
    check(nccl.ncclGroupEnd())
    print([device.read() for device in devices])
    for comm, device in zip(comms, devices):  # each needs what the first gives; no group, and twice
        check(all_reduce(comm, device))
        check(all_reduce(comm, device))
    print([device.read() for device in devices])
    check(nccl.ncclGroupStart())
    for i, (comm, device) in enumerate(zip(comms, devices)):
        device.use()
        check(nccl.ncclSend(device.memory, ctypes.c_size_t(1), INT64, (i + 1) % 3, comm, device.stream))
        check(nccl.ncclRecv(pointer(device.memory.value + 8), ctypes.c_size_t(1), INT64, (i + 2) % 3, comm,
                            device.stream))
    check(nccl.ncclGroupEnd())
    print([device.read() for device in devices])
    parts = [pointer() for _ in comms]
    check(nccl.ncclGroupStart())
    for i, comm in enumerate(comms):
        check(nccl.ncclCommSplit(comm, i % 2, -i, ctypes.byref(parts[i]), None))
    check(nccl.ncclGroupEnd())
    places = []
    for part in parts:
        count, rank = ctypes.c_int(), ctypes.c_int()
        check(nccl.ncclCommCount(part, ctypes.byref(count)))
        check(nccl.ncclCommUserRank(part, ctypes.byref(rank)))
        places.append([count.value, rank.value])
    print(places)
    for comm in parts + comms:
        check(nccl.ncclCommDestroy(comm))


def end_a_child(text):
    """As soon as this process is where the ranks meet; as exit() ends it."""
    room = pathlib.Path(f"/dev/shm/simgpu-{os.geteuid()}-{text}")
    while not (room.exists() and f":{room.stat().st_ino} " in pathlib.Path("/proc/locks").read_text()):
        pass
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).exit(0)
    os.waitpid(child, 0)
    print("forked", room.exists(), flush=True)


def rank_main(text, rank, world, do):
    device = Device(rank, [rank, 10 * rank, 1, 0])
    comm = pointer()
    if do == "fork":
        threading.Thread(target=end_a_child, args=[text]).start()
    check(nccl.ncclCommInitRank(ctypes.byref(comm), world, Id(text.encode()), rank))
    if do == "alone" and rank == 1:
        signal.pause()
    if do == "die" and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if do == "leave" and rank == 1:
        check(nccl.ncclCommDestroy(comm))
        return
    if do == "cycle":  # rank 0 needs an answer to what it sends after it has asked for it
        event = pointer()
        check(cuda.cudaEventCreateWithFlags(ctypes.byref(event), 2))
        other = Device(rank, [rank + 5, 0, 0, 0])
        if rank == 0:
            check(receive(comm, device, 1))
            check(cuda.cudaEventRecord(event, device.stream))
            print("asked", cuda.cudaEventQuery(event))
            check(send(comm, other, 1))
        else:
            check(receive(comm, other, 0))
            check(other.wait())
            check(send(comm, other, 0))
    else:
        for _ in range(30 if do == "ahead" else 1):
            check(all_reduce(comm, device, 2 if do == "other" and rank == 1 else 4))
    print("waited", device.wait(), flush=True)
    result = ctypes.c_int()
    check(nccl.ncclCommGetAsyncError(comm, ctypes.byref(result)))
    print("then", result.value, device.read(4) if not result.value else all_reduce(comm, device))
    check(nccl.ncclCommDestroy(comm))


if sys.argv[1] == "one":
    one()
elif sys.argv[1] == "id":
    new = Id()
    check(nccl.ncclGetUniqueId(ctypes.byref(new)))
    print(new.text.decode())
elif sys.argv[1] == "rank":
    rank_main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
