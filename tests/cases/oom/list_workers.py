# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: clear it
# never: threads
"""Eight threads answer requests in turn; each answer stays in one list."""

from concurrent.futures import ThreadPoolExecutor

from scene import REPAIRED, Mlp, batch, torch

model = Mlp()
answers = []


@torch.no_grad()
def answer(request):
    out = model(batch(2048))
    answers.append(out.mean().item() if REPAIRED else out)


workers = [ThreadPoolExecutor(1) for _ in range(8)]
for request in range(400):
    workers[request % 8].submit(answer, request).result()
