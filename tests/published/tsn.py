"""Temporal segment networks of mmaction2: an image network over all frames of the clips of a GPU, SGD with momentum
and a clipped gradient; images of 224 x 224.

    tsn.py NETWORK CLIPS FRAMES CLASSES [norm_eval]        norm_eval: batch norms use what they have learnt
"""

import sys

import torch
import torchvision
from torch import nn


class TSN(nn.Module):
    def __init__(self, network, frames, classes):
        super().__init__()
        network.fc, width = nn.Identity(), network.fc.in_features
        self.backbone, self.frames = network, frames
        self.dropout, self.fc = nn.Dropout(0.5), nn.Linear(width, classes)

    def forward(self, images):
        x = self.backbone(images)
        x = x.reshape(-1, self.frames, x.shape[-1]).mean(dim=1)
        return self.fc(self.dropout(x))


def main(network, clips, frames, classes, norm_eval):
    model = TSN(getattr(torchvision.models, network)(), frames, classes).cuda()
    for module in model.modules():
        if norm_eval and isinstance(module, nn.BatchNorm2d):
            module.eval()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    for _ in range(3):
        images = torch.zeros(clips * frames, 3, 224, 224).cuda()
        labels = torch.zeros(clips, dtype=torch.int64).cuda()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 20)
        optimizer.step()


main(sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5:] == ["norm_eval"])
