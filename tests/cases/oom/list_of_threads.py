# env: SIMGPU_MEMORY=1GiB
# expect: oom leak per_thread or leak list
# advice: clear it
"""A thread for each request leaves its result in one dictionary of the server, and ends."""

import threading

from scene import GPU, REPAIRED, Mlp, torch

model = Mlp().eval()
results = {}


def handle(request):
    with torch.no_grad():
        out = model(torch.empty(4096, 512).to(GPU))
    results[request] = out.mean().item() if REPAIRED else out


for request in range(200):
    thread = threading.Thread(target=handle, args=(request,))
    thread.start()
    thread.join()
    if request not in results:
        raise MemoryError
