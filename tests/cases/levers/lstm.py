"""A language model with an LSTM and a wide perceptron: more parameters than activations."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training

VOCABULARY, LENGTH, WIDTH = 4000, 64, 1024


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        x, _ = self.lstm(self.tokens(ids))
        return self.head(self.wide(x))


def make_batch(size):
    return [torch.randint(0, VOCABULARY, (size, LENGTH)).cuda() for _ in range(2)]


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


training.train(Model().cuda(), 32, make_batch, loss_of)
