"""A radiance field: all pixels and rays on the GPU, a table of features that is a plain parameter, a
custom Function, no module around the whole, and a grid that is refreshed without gradients."""

import torch
import torch.nn as nn

import truth
from models import perceptron

PIXELS, RAYS, POINTS, CELLS, FEATURES = 200_000, 4096, 64, 65536, 32


class Truncated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, slope):
        (x,) = ctx.saved_tensors
        return slope * torch.exp(x.clamp(-15, 15))


origins = torch.randn(PIXELS, 3).cuda()
ways = torch.randn(PIXELS, 3).cuda()
colors = torch.rand(PIXELS, 3).cuda()
truth.batch(origins, ways, colors)
table = nn.Parameter(torch.randn(CELLS, FEATURES, device="cuda") * 1e-4)
network = perceptron(FEATURES, 64, 64, 4).cuda()
occupied = torch.zeros(128, 128, 128, device="cuda")
truth.label("other", occupied)
optimizer = torch.optim.Adam([table, *network.parameters()], lr=1e-2, eps=1e-15)


def look(points):
    cells = (points * 1000).long().sum(-1) % CELLS
    return network(table[cells])


def render(start, way):
    depth = torch.linspace(0.1, 4, POINTS, device="cuda")
    points = start[:, None] + depth[None, :, None] * way[:, None]
    seen = look(points.reshape(-1, 3)).view(len(start), POINTS, 4)
    density = Truncated.apply(seen[..., 3])
    hidden = 1 - torch.exp(-density * 0.06)
    weights = hidden * torch.cumprod(1 - hidden + 1e-10, 1)
    return (weights[..., None] * seen[..., :3].sigmoid()).sum(1)


for step in range(6):
    rows = torch.randint(0, PIXELS, (RAYS,), device="cuda")
    start, way, wanted = origins[rows], ways[rows], colors[rows]
    truth.batch(rows, start, way, wanted)
    loss = (render(start, way) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 3 == 2:
        with torch.no_grad():
            points = torch.rand(8192, 3, device="cuda")
            occupied.view(-1)[:8192] = look(points)[:, 3].exp()
