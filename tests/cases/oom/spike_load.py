# env: SIMGPU_MEMORY=1GiB
# expect: oom spike load or duplicate
# advice: map_location='cpu'
"""A checkpoint is loaded to the GPU while the model is already there."""

from scene import GPU, REPAIRED, Mlp, checkpoint, torch

file = checkpoint(4096, 6)
model = Mlp(4096, 6)
model.load_state_dict(torch.load(file, map_location="cpu" if REPAIRED else GPU))
