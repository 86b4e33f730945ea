"""SimCLR with a bank of the features of all images (a tensor that is no module's), nearest neighbours of a
test batch in it, and then a linear layer on frozen features."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

IMAGES, SIZE = 4096, 128


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for wider in (48, 96, 192, 384):
            layers += [nn.Conv2d(width, wider, 3, 2, 1, bias=False), nn.BatchNorm2d(wider), nn.ReLU(True)]
            width = wider
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.projector = nn.Sequential(
            nn.Linear(384, 1024), nn.BatchNorm1d(1024), nn.ReLU(True), nn.Linear(1024, SIZE)
        )

    def forward(self, x):
        h = self.features(x)
        return h, F.normalize(self.projector(h), dim=-1)


def augment(x):
    gain = torch.empty(x.size(0), 1, 1, 1, device=x.device).uniform_(0.6, 1.4)
    shift = torch.empty(x.size(0), 3, 1, 1, device=x.device).uniform_(-0.2, 0.2)
    x = torch.roll(x, shifts=(3, -2), dims=(2, 3))
    view = (x * gain + shift).clamp_(0, 1)
    truth.batch(gain, shift, x, view)
    return view


def nt_xent(z1, z2, temperature=0.5):
    z = torch.cat([z1, z2], dim=0)
    similar = torch.mm(z, z.t()) / temperature
    similar.masked_fill_(torch.eye(len(z), dtype=torch.bool, device=z.device), -1e9)
    half = len(z1)
    wanted = torch.cat([torch.arange(half, 2 * half), torch.arange(half)]).to(z.device)
    truth.batch(wanted)
    return F.cross_entropy(similar, wanted)


def images_of(rows):
    x, at = torch.rand(rows, 3, 48, 48).cuda(), torch.randint(0, IMAGES, (rows,)).cuda()
    truth.batch(x, at)
    return x, at


net = Backbone().cuda()
bank = F.normalize(torch.randn(IMAGES, SIZE, device="cuda"), dim=1)
truth.label("other", bank)
optimizer = torch.optim.SGD(net.parameters(), lr=0.06, momentum=0.9, weight_decay=5e-4)
for _ in range(5):
    x, at = images_of(128)
    _, z1 = net(augment(x))
    _, z2 = net(augment(x))
    loss = nt_xent(z1, z2)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        bank[at] = 0.5 * bank[at] + 0.5 * z1
net.eval()
with torch.no_grad():
    x, _ = images_of(128)
    near = (net(x)[1] @ bank.t()).topk(20, dim=1).indices
for p in net.parameters():
    p.requires_grad = False
probe = nn.Linear(384, 1000).cuda()
optimizer = torch.optim.Adam(probe.parameters(), lr=1e-3)
for _ in range(4):
    x, y = images_of(256)
    with torch.no_grad():
        h, _ = net(x)
    loss = F.cross_entropy(probe(h), y % 1000)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
