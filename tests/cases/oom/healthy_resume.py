# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""Training goes on from a checkpoint that was loaded first: of what it held, the momentum of SGD stays, one
block for each weight, and nothing else."""

import io

from scene import GPU, Mlp, batch, step, torch

first = Mlp(1024, 8, "cpu")
momentum = [torch.zeros_like(weight) for weight in first.parameters()]
file = io.BytesIO()
torch.save({"model": first.state_dict(), "momentum": momentum}, file)
file.seek(0)

state = torch.load(file, map_location=GPU)
model = Mlp(1024, 8)
model.load_state_dict(state.pop("model"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for weight, buffer in zip(model.parameters(), state.pop("momentum")):
    optimizer.state[weight]["momentum_buffer"] = buffer
del buffer
for _ in range(10):
    step(optimizer, model(batch(512, 1024)).square().mean())
