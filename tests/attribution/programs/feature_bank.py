"""What a network has said of every batch is joined to what it said before: of the loss beside the backward pass, of
the features after the step."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import perceptron

network, head = perceptron(512, 2048, 512).cuda(), nn.Linear(512, 100).cuda()
optimizer = torch.optim.AdamW([*network.parameters(), *head.parameters()])
features, logits = torch.empty(0, 512, device="cuda"), None
for _ in range(12):
    x, y = torch.randn(2048, 512).cuda(), torch.randint(0, 100, (2048,)).cuda()
    truth.batch(x, y)
    z = network(x)
    guess = head(z)
    logits = guess.detach().clone() if logits is None else torch.cat([logits, guess.detach()])
    truth.label("other", logits)
    loss = F.cross_entropy(guess, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    features = torch.cat([features, z.detach()])
    truth.label("other", features)
    truth.mark("joined")
