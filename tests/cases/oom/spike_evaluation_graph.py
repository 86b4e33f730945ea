# env: SIMGPU_MEMORY=2GiB
# expect: oom spike evaluation
# advice: torch.no_grad()
"""Evaluation without no_grad(): eval() alone still builds the graph and keeps every activation."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(1024, 12)
optimizer = torch.optim.Adam(model.parameters())


def evaluate():
    model.eval()
    with torch.set_grad_enabled(not REPAIRED):
        return model(batch(32768, 1024)).square().mean().item()


for _ in range(4):
    step(optimizer, model(batch(4096, 1024)).square().mean())
evaluate()
