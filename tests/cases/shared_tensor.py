"""A tensor on the GPU given to another process: by an IPC handle, and counted where it was obtained."""

import os

import torch.multiprocessing as multiprocessing
from common import done, torch


def child(queue, is_done):
    shared = queue.get()
    own = child.kept = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")  # to the end
    done(__file__, shared_bytes=shared.nbytes, own_bytes=own.nbytes)
    del shared
    is_done.set()


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    queue, is_done = multiprocessing.Queue(), multiprocessing.Event()
    other = multiprocessing.Process(target=child, args=(queue, is_done))
    os.environ["RANK"] = "1"
    other.start()
    os.environ["RANK"] = "0"
    tensor = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    queue.put(tensor)
    is_done.wait(100)
    other.join(100)
    assert other.exitcode == 0
    done(__file__)
