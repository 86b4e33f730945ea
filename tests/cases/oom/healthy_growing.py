# env: SIMGPU_MEMORY=8GiB
# expect: nothing
"""A model that gets a layer every three steps, and is dropped when the next one is trained, of which each epoch's
outputs are kept for its figures."""

from scene import Mlp, batch, step, torch


def train(model, epochs, steps):
    for _ in range(epochs):
        optimizer = torch.optim.Adam(model.parameters())
        outputs = []
        for _ in range(steps):
            out = model(batch(2048))
            step(optimizer, out.square().mean())
            outputs.append(out.detach())
        print(sum(out.mean().item() for out in outputs))


def grow():
    model = Mlp(512, 1)
    for _ in range(10):
        model.layers.append(torch.nn.Linear(512, 512, device="cuda"))
        train(model, 1, 3)


grow()
train(Mlp(), 2, 30)
