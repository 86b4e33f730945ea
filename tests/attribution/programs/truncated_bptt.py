"""A long sequence in pieces: the state of a recurrent network goes on from piece to piece without its
graph, the inputs of a piece are one-hot and made on the GPU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

WORDS, WIDTH, ROWS, PIECE = 2048, 768, 64, 48


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell1, self.cell2 = nn.GRUCell(WORDS, WIDTH), nn.GRUCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words, first, second):
        logits = []
        for word in words.unbind(1):
            first = self.cell1(F.one_hot(word, WORDS).float(), first)
            second = self.cell2(first, second)
            logits.append(self.head(second))
        return torch.stack(logits, 1), first, second


net = Network().cuda()
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
text = torch.randint(0, WORDS, (ROWS, 6 * PIECE + 1)).cuda()
truth.batch(text)
first = second = None
for piece in range(6):
    words = text[:, piece * PIECE : (piece + 1) * PIECE]
    wanted = text[:, piece * PIECE + 1 : (piece + 1) * PIECE + 1]
    logits, first, second = net(words, first, second)
    loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
    net.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 1.0)
    optimizer.step()
    first, second = first.detach(), second.detach()
