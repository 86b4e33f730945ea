"""LSTM cells stepped in Python, states carried over between batches, Adafactor."""

import torch
import torch.nn as nn

import truth
from models import VOCABULARY, next_token_loss, token_ids


class Net(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.cell1 = nn.LSTMCell(width, width)
        self.cell2 = nn.LSTMCell(width, width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids, states):
        outputs, x = [], self.tokens(ids)
        for t in range(ids.shape[1]):
            states[0] = self.cell1(x[:, t], states[0])
            states[1] = self.cell2(states[0][0], states[1])
            outputs.append(states[1][0])
        return self.head(torch.stack(outputs, 1)), states


model = Net().cuda()
optimizer = torch.optim.Adafactor(model.parameters())
states = [[torch.zeros(64, 512, device="cuda") for _ in range(2)] for _ in range(2)]
for _ in range(4):
    ids, targets = token_ids(64, 32).cuda(), token_ids(64, 32).cuda()
    truth.batch(ids, targets)
    states = [tuple(t.detach() for t in state) for state in states]
    out, states = model(ids, states)
    loss = next_token_loss(out, targets)
    for p in model.parameters():
        p.grad = None
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
