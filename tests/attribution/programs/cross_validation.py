"""Cross-validation: a fold has a model of its own, whose best weights are kept as clones and are loaded once
more after the model was deleted; the rows lie on the GPU, standardised."""

import torch
import torch.nn as nn

import truth

ROWS, COLUMNS = 20000, 200


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(COLUMNS, 1024), nn.SiLU(), nn.Linear(1024, 1024), nn.SiLU(), nn.Linear(1024, 1)
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


def scaled(x):
    return (x - x.mean(0)) / x.std(0).clamp(min=1e-6)


def train(x, y):
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best, best_error = None, None
    for epoch in range(4):
        model.train()
        for rows in torch.randperm(len(x), device="cuda")[:8192].split(4096):
            truth.batch(rows)
            a, b = x[rows], y[rows]
            truth.batch(a, b)
            loss = nn.functional.mse_loss(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = loss.item() - epoch
        if best is None or error < best_error:
            best_error = error
            best = {k: v.detach().clone() for k, v in model.state_dict().items()}
            truth.label("other", *best.values())
    return best


x, y = torch.randn(ROWS, COLUMNS).cuda(), torch.randn(ROWS).cuda()
truth.batch(x, y)
x = scaled(x)
truth.batch(x)
folds = torch.arange(ROWS, device="cuda").chunk(3)
results = []
for i in range(3):
    rest = torch.cat([f for j, f in enumerate(folds) if j != i])
    truth.batch(rest)
    tx, ty = x[rest], y[rest]
    truth.batch(tx, ty)
    best = train(tx, ty)
    truth.mark("trained")
    model = Net().cuda()
    model.load_state_dict(best)
    with torch.no_grad():
        vx = x[folds[i]]
        truth.batch(vx)
        results.append((model(vx) - y[folds[i]]).abs().mean().item())
