# env: SIMGPU_MEMORY=8GiB
# expect: finding leak graph
# advice: loss.item()
"""Each validation's graph stays in a list of a function, which returns before the program ends."""

from scene import REPAIRED, Mlp, batch, step, torch


def main():
    model = Mlp()
    optimizer = torch.optim.Adam(model.parameters())
    scores = []
    for _ in range(40):
        step(optimizer, model(batch(2048)).square().mean())
        score = model(batch(2048)).mean()
        scores.append(score.item() if REPAIRED else score)


main()
