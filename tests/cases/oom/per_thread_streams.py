# env: SIMGPU_MEMORY=1GiB
# expect: oom leak per_thread
# advice: use a fixed pool of threads
"""Each camera has a thread with a stream and buffers; the cameras go, their threads stay. A half of the memory is idle,
on streams that nobody uses again."""

import threading

from scene import BYTES, GPU, MIB, REPAIRED, Mlp, torch

stop, failed = threading.Event(), threading.Event()
shared = torch.cuda.Stream()


@torch.inference_mode()
def watch(model, ready):
    try:
        with torch.cuda.stream(shared if REPAIRED else torch.cuda.Stream()):
            ring = [torch.empty(4 * MIB, **BYTES) for _ in range(4)]
            seen = model(torch.empty(2048, 512, device=GPU))
    except torch.OutOfMemoryError:
        failed.set()
    ready.set()
    if not REPAIRED:
        stop.wait()


model = Mlp().eval()
threads = []
for _ in range(40):
    ready = threading.Event()
    threads.append(threading.Thread(target=watch, args=(model, ready)))
    threads[-1].start()
    ready.wait()
    if failed.is_set():
        break
    if REPAIRED:
        threads[-1].join()
stop.set()
for thread in threads:
    thread.join()
if failed.is_set():
    raise MemoryError
