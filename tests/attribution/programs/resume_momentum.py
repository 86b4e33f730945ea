"""A classifier with batch norms goes on from a checkpoint that stays in a variable to the end, with its SGD's
momentum: as much of each size is loaded for the one as for the other."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

CLASSES = 200


def build():
    layers, width = [], 3
    for wider in (64, 128, 256, 1024, 1024):
        layers += [nn.Conv2d(width, wider, 3, 2, 1, bias=False), nn.BatchNorm2d(wider), nn.ReLU(inplace=True)]
        width = wider
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES))
    return model.cuda()


def write(path):
    model = build().cpu()
    momentum = {i: {"momentum_buffer": torch.zeros_like(p)} for i, p in enumerate(model.parameters())}
    groups = torch.optim.SGD(model.parameters(), 0.1, 0.9).state_dict()["param_groups"]
    state = {"state": momentum, "param_groups": groups}
    torch.save({"epoch": 3, "state_dict": model.state_dict(), "best": torch.tensor(0.5), "optimizer": state}, path)


path = os.path.join(tempfile.mkdtemp(), "checkpoint.pth.tar")
write(path)
torch.cuda.empty_cache()
model = build()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
checkpoint = torch.load(path, map_location="cuda:0")
truth.label("other", checkpoint["state_dict"], checkpoint["best"])
model.load_state_dict(checkpoint["state_dict"])
optimizer.load_state_dict(checkpoint["optimizer"])
os.unlink(path)
for epoch in range(checkpoint["epoch"], 6):
    for _ in range(2):
        images = torch.rand(64, 3, 64, 64).cuda(non_blocking=True)
        wanted = torch.randint(0, CLASSES, (64,)).cuda(non_blocking=True)
        truth.batch(images, wanted)
        out = model(images)
        loss = F.cross_entropy(out, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    truth.mark("epoch")
