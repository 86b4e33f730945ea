# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: clear it
# never: threads
"""A loader thread for each step moves two batches to the GPU, of which training takes one: the queue has no bound."""

import queue
import threading

from scene import REPAIRED, Mlp, batch, step, torch

ready = queue.Queue()


def fill():
    for _ in range(2):
        if not (REPAIRED and ready.qsize() >= 3):
            ready.put(batch(4096))


model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(160):
    loader = threading.Thread(target=fill)
    loader.start()
    loader.join()
    x = ready.get_nowait()
    step(optimizer, model(x[:512]).square().mean())
