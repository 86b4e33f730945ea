# env: SIMGPU_MEMORY=8GiB
# expect: finding duplicate
# advice: del checkpoint
"""Training works, with a second copy of the weights that nothing uses since the start."""

from scene import GPU, REPAIRED, Mlp, batch, checkpoint, step, torch

state = torch.load(checkpoint(2048, 8), map_location=GPU)
model = Mlp(2048, 8)
model.load_state_dict(state)
if REPAIRED:
    del state
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    step(optimizer, model(batch(512, 2048)).square().mean())
