"""A language model in bfloat16 that shifts its logits by a token after it has made them fp32: three of their size."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training

VOCABULARY, LENGTH, WIDTH, LAYERS = 16384, 512, 256, 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids)
        for layer in self.layers:
            x = F.relu(layer(x))
        targets = ids[:, 1:]
        if training.has("chunks"):
            return training.chunked_loss(self.head, x[:, :-1], targets)
        logits = self.head(x).float()
        return F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), targets.reshape(-1))


def make_batch(size):
    return torch.randint(0, VOCABULARY, (size, LENGTH)).cuda(), None


training.train(Model().to(torch.bfloat16).cuda(), 8, make_batch, lambda loss, _: loss)
