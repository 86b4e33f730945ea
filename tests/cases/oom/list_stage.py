# env: SIMGPU_MEMORY=8GiB
# expect: finding leak list
# advice: move what is kept to the CPU
"""Each step's output stays in a list until train() returns; evaluation and more training follow."""

from scene import REPAIRED, Mlp, batch, step, torch


def train(model):
    optimizer = torch.optim.Adam(model.parameters())
    outputs = []
    for _ in range(40):
        out = model(batch(2048))
        step(optimizer, out.square().mean())
        outputs.append(out.detach().cpu() if REPAIRED else out.detach())


model = Mlp()
train(model)
with torch.no_grad():
    print(sum(model(batch(2048)).mean().item() for _ in range(10)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    step(optimizer, model(batch(1024)).square().mean())
