"""Prints what NCCL takes on device 0 of a communicator of N devices, in bytes: for itself, for the first all-reduce,
for a first send, for another communicator: sizes.py N"""

import ctypes
import sys

sys.argv, count = ["calls.py", "none"], int(sys.argv[1])
from calls import Device, all_reduce, check, cuda, nccl, pointer, receive, send  # noqa: E402


def used():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    devices[0].use()
    check(cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    return total.value - free.value


def communicators():
    comms = (pointer * count)()
    check(nccl.ncclCommInitAll(comms, count, None))
    return [pointer(each) for each in comms]


def together(action):
    check(nccl.ncclGroupStart())
    for i, (comm, device) in enumerate(zip(comms, devices)):
        device.use()
        action(i, comm, device)
    check(nccl.ncclGroupEnd())


def to_the_next(i, comm, device):
    check(send(comm, device, (i + 1) % count))
    check(receive(comm, device, (i - 1) % count))


devices = [Device(i) for i in range(count)]
seen = [used()]
comms = communicators()
seen.append(used())
for _ in range(2):
    together(lambda i, comm, device: check(all_reduce(comm, device)))
seen.append(used())
for _ in range(2):
    together(to_the_next)
seen.append(used())
communicators()
seen.append(used())
print([after - before for before, after in zip(seen, seen[1:])])
