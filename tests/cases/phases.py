"""Training loops whose steps are hard to see: optimizers that allocate nothing (SGD without momentum,
a fused one, two one after the other, a fused one after one that allocates), accumulation, gradient
clipping, evaluation in between. The counts are those that the program made itself."""

import json
import os
import threading

from common import done, nn, torch

counts = {"steps": 0, "backwards": 0}
lock = threading.Lock()


def note(what):
    with lock:
        counts[what] += 1


class Scaled(torch.optim.Optimizer):
    """One that somebody wrote: every step of it allocates."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            p.add_(p.grad / (p.grad.norm() + 1e-7), alpha=-0.1)


def model_on(device):
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).to(device)


def backward(model, device):
    model(torch.randn(96, 256).to(device)).square().mean().backward()
    note("backwards")


def train(model, optimizers, device, iterations, accumulate=1, clip=False):
    for _ in range(iterations):
        for _ in range(accumulate):
            backward(model, device)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            note("steps")
            optimizer.zero_grad()
        with torch.no_grad():
            model(torch.randn(64, 256).to(device))


def main(device="cuda:0"):
    model = model_on(device)
    train(model, [torch.optim.SGD(model.parameters(), lr=0.1)], device, 5)
    train(model, [torch.optim.AdamW(model.parameters(), fused=True)], device, 4, accumulate=3)
    train(model, [torch.optim.Adam(model.parameters())], device, 3, clip=True)
    halves = [
        torch.optim.SGD(model[0].parameters(), lr=0.1),
        torch.optim.SGD(model[2].parameters(), lr=0.1),
    ]
    train(model, halves, device, 3)
    for _ in range(3):
        backward(model, device)
        halves[0].step()
        halves[1].step()
        note("steps")
        note("steps")
        model.zero_grad()
    both = [
        Scaled(model[0].parameters()),
        torch.optim.AdamW(model[2].parameters(), fused=True),
    ]
    for _ in range(4):
        backward(model, device)
        for optimizer in both:
            optimizer.step()
            note("steps")
        model.zero_grad()


main()
if os.environ.get("CASE_THREADS"):
    threads = [threading.Thread(target=main, args=(f"cuda:{index}",)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("counts", json.dumps(counts))
done(__file__)
