# env: SIMGPU_MEMORY=2GiB
# expect: oom spike evaluation
# advice: a smaller batch for evaluation
# never: no_grad
"""Evaluation without gradients asks for the scores of a large vocabulary for a batch many times as large; the layers
below it keep nothing."""

from scene import REPAIRED, Mlp, batch, nn, step, torch

model = nn.Sequential(Mlp(512, 8), nn.Linear(512, 32000, device="cuda"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.inference_mode()
def evaluate():
    return model(batch(512 if REPAIRED else 16384)).argmax(-1).cpu()


for _ in range(4):
    step(optimizer, model(batch(512)).square().mean())
evaluate()
