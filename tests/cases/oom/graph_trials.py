# env: SIMGPU_MEMORY=8GiB
# expect: finding leak graph
# advice: loss.item()
"""Five trainings, one after the other, each of which keeps the graphs of its validations until it returns."""

from scene import REPAIRED, Mlp, batch, step, torch


def train(rate):
    model = Mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    scores = []
    for _ in range(30):
        step(optimizer, model(batch(2048)).square().mean())
        score = model(batch(2048)).mean()
        scores.append(score.item() if REPAIRED else score)


for rate in (0.1, 0.03, 0.01, 0.003, 0.001):
    train(rate)
