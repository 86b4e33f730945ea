"""No network at all: fields on grids made of zeros and ones, stepped in time, with snapshots kept."""

import torch

import truth

SIDE = 1024


def laplacian(u):
    return (
        torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1) - 4 * u
    )


u = torch.ones(SIDE, SIDE, device="cuda")
v = torch.zeros(SIDE, SIDE, device="cuda")
v[400:600, 400:600] = 1
walls = torch.ones(SIDE, SIDE, dtype=torch.bool, device="cuda")
rate = torch.full((SIDE, SIDE), 0.04, device="cuda")
truth.label("other", u, v, walls, rate)
snapshots = []
for step in range(40):
    reaction = u * v * v
    u = u + 0.16 * laplacian(u) - reaction + rate * (1 - u)
    v = (v + 0.08 * laplacian(v) + reaction - (0.06 + rate) * v) * walls
    truth.label("other", u, v, reaction)
    if step % 10 == 9:
        snapshots.append(v.clone())
        truth.label("other", snapshots)
        truth.mark("snapshot")
