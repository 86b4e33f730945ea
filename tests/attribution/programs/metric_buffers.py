"""Training and evaluation with metrics that live on the GPU: a confusion matrix, predictions joined to one tensor
that grows, running sums, and losses in a list."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import perceptron

CLASSES = 500


class Predictions:
    def __init__(self):
        self.scores = torch.empty(0, CLASSES, device="cuda")
        self.labels = torch.empty(0, dtype=torch.long, device="cuda")
        self.confusion = torch.zeros(CLASSES, CLASSES, dtype=torch.long, device="cuda")
        truth.label("other", self.scores, self.labels, self.confusion)

    def update(self, scores, labels):
        self.scores = torch.cat([self.scores, scores])
        self.labels = torch.cat([self.labels, labels])
        truth.label("other", self.scores, self.labels)
        places = labels * CLASSES + scores.argmax(1)
        self.confusion += torch.bincount(places, minlength=CLASSES**2).view(CLASSES, CLASSES)


def batch():
    x, y = torch.randn(1024, 512).cuda(), torch.randint(0, CLASSES, (1024,)).cuda()
    truth.batch(x, y)
    return x, y


net = nn.Sequential(perceptron(512, 1024, 1024), nn.LayerNorm(1024), nn.Linear(1024, CLASSES)).cuda()
optimizer = torch.optim.Adam(net.parameters(), amsgrad=True)
losses = []
for epoch in range(3):
    for _ in range(4):
        x, y = batch()
        loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    truth.label("other", losses)
    metrics = Predictions()
    with torch.no_grad():
        for _ in range(6):
            x, y = batch()
            metrics.update(net(x).softmax(1), y)
        truth.mark("evaluated")
        ordered = metrics.scores.sort(0, descending=True).values
    del metrics, ordered
