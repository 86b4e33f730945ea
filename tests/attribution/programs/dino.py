"""Self-distillation: a teacher that is a moving average sees two views, the student more of them; a centre is kept
in a buffer; hooks collect the features of a layer for a probe that trains beside."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import Block

SIZE, OUT = 384, 8192


class Vision(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.patches = nn.Conv2d(3, SIZE, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, SIZE))
        self.place = nn.Parameter(torch.zeros(1, 65, SIZE))
        self.blocks = nn.Sequential(*(Block(SIZE, 6) for _ in range(depth)))
        self.head = nn.Sequential(nn.Linear(SIZE, 1024), nn.GELU(), nn.Linear(1024, OUT))

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1)
        return self.head(self.blocks(x + self.place[:, : x.shape[1]])[:, 0])


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(1, OUT))

    def forward(self, student, teacher):
        wanted = F.softmax((teacher - self.centre) / 0.04, -1).detach().chunk(2)
        logs = [F.log_softmax(s / 0.1, -1) for s in student.chunk(4)]
        terms = [-(w * s).sum(-1).mean() for i, w in enumerate(wanted) for j, s in enumerate(logs) if i != j]
        with torch.no_grad():
            self.centre.mul_(0.9).add_(teacher.mean(0, keepdim=True), alpha=0.1)
        return sum(terms) / len(terms)


features = {}
student = Vision().cuda()
teacher = copy.deepcopy(student).requires_grad_(False)
student.blocks[2].register_forward_hook(lambda module, inputs, out: features.__setitem__("middle", out.detach()))
criterion = Loss().cuda()
probe = nn.Linear(SIZE, 100).cuda()
optimizer = torch.optim.AdamW([*student.parameters()], lr=1e-3)
probe_optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda", enabled=False)
for step in range(4):
    images = torch.rand(32, 3, 64, 64).cuda()
    labels = torch.randint(0, 100, (32,)).cuda()
    views = [torch.flip(images, [3]), images + 0.1 * torch.randn_like(images)]
    views += [F.avg_pool2d(v, 2) for v in views]
    truth.batch(images, labels, views)
    with torch.no_grad():
        wanted = teacher(torch.cat(views[:2]))
    large, small = student(torch.cat(views[:2])), student(torch.cat(views[2:]))
    loss = criterion(torch.cat([large, small]), wanted)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    with torch.no_grad():
        torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.004)
    guess = probe(features["middle"].mean(1)[:32])
    F.cross_entropy(guess, labels).backward()
    probe_optimizer.step()
    probe_optimizer.zero_grad()
