# env: SIMGPU_MEMORY=2GiB
# expect: oom spike evaluation
# advice: a smaller batch for evaluation
# never: no_grad
"""The validation batch is many times the training batch, without gradients."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp(1024, 8)
optimizer = torch.optim.Adam(model.parameters())


@torch.no_grad()
def evaluate():
    model.eval()
    return model(batch(8192 if REPAIRED else 163840, 1024)).square().mean()


for _ in range(4):
    step(optimizer, model(batch(8192, 1024)).square().mean())
evaluate()
