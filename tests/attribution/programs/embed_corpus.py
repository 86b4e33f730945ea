"""Nothing trains: a frozen encoder embeds a corpus, the vectors are put into one matrix made before, their nearest
neighbours are searched, and centres of clusters are moved by hand."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import Block

SIZE, COUNT, CLUSTERS = 384, 16384, 256


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(16384, SIZE)
        self.blocks = nn.Sequential(*(Block(SIZE, 6) for _ in range(4)))

    def forward(self, ids):
        return F.normalize(self.blocks(self.words(ids)).mean(1), dim=-1)


encoder = Encoder().eval().cuda()
corpus = torch.zeros(COUNT, SIZE, device="cuda")
counts = torch.ones(CLUSTERS, device="cuda")
truth.label("other", corpus, counts)
with torch.no_grad():
    for begin in range(0, COUNT, 1024):
        ids = torch.randint(0, 16384, (1024, 32)).cuda()
        truth.batch(ids)
        corpus[begin : begin + 1024] = encoder(ids)
    truth.mark("embedded")
    centres = corpus[torch.randperm(COUNT, device="cuda")[:CLUSTERS]]
    truth.label("other", centres)
    for _ in range(4):
        nearest = (corpus @ centres.T).argmax(1)
        sums = torch.zeros(CLUSTERS, SIZE, device="cuda").index_add_(0, nearest, corpus)
        counts = torch.bincount(nearest, minlength=CLUSTERS).clamp(min=1)
        centres = F.normalize(sums / counts[:, None], dim=1)
        truth.label("other", nearest, counts, centres)
        truth.mark("clustered")
    neighbours = []
    for part in corpus.split(4096):
        values, places = (part @ corpus.T).topk(10)
        truth.label("other", values, places)
        neighbours.append((values, places))
    truth.mark("searched")
