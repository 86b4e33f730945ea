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
        x = self.wide(x)
        return x if training.has("chunks") else self.head(x)


model = Model().cuda()


def make_batch(size):
    shape = size, training.length(LENGTH)
    return [torch.randint(0, VOCABULARY, shape).cuda() for _ in range(2)]


def loss_of(made, targets):
    if training.has("chunks"):
        return training.chunked_loss(model.head, made, targets)
    return F.cross_entropy(made.flatten(0, 1), targets.flatten())


training.train(model, 32, make_batch, loss_of)
