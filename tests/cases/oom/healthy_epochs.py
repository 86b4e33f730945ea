# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""The outputs of an epoch are kept for its figures and then let go, also those of the last."""

from scene import Mlp, batch, step, torch


def train(model, optimizer):
    outputs = []
    for _ in range(12):
        out = model(batch(2048))
        step(optimizer, out.square().mean())
        outputs.append(out.detach())
    return sum(out.mean().item() for out in outputs)


def main():
    model = Mlp()
    optimizer = torch.optim.Adam(model.parameters())
    print([train(model, optimizer) for _ in range(4)])


main()
