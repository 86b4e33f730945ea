# env: SIMGPU_MEMORY=1080MiB
# expect: oom duplicate
# advice: del checkpoint
"""The checkpoint that the model was loaded from stays on the GPU while it is trained."""

from scene import GPU, REPAIRED, Mlp, batch, checkpoint, step, torch

state = torch.load(checkpoint(4096, 3), map_location=GPU)
model = Mlp(4096, 3)
model.load_state_dict(state)
if REPAIRED:
    del state
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    step(optimizer, model(batch(3072, 4096)).square().mean())
