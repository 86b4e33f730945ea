"""checkpoint_sequential over a deep stack, whose segments' inputs go to page-locked memory, with accumulation and
clipping; validation without gradients, its outputs kept until its end."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint_sequential

import truth
from models import Block

WIDTH = 512
stack = nn.Sequential(*(Block(WIDTH, 8) for _ in range(8))).cuda()
enter, leave = nn.Linear(80, WIDTH).cuda(), nn.Linear(WIDTH, 40).cuda()
everything = nn.ModuleList([stack, enter, leave])
optimizer = torch.optim.NAdam(everything.parameters(), lr=1e-4)


def batch():
    x, y = torch.randn(8, 256, 80).cuda(), torch.randint(0, 40, (8, 256)).cuda()
    truth.batch(x, y)
    return x, y


for step in range(4):
    for micro in range(2):
        x, y = batch()
        h = enter(x)
        with save_on_cpu(pin_memory=True):
            h = checkpoint_sequential(stack, 4, h, use_reentrant=False)
        loss = F.cross_entropy(leave(h).flatten(0, 1), y.flatten()) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(everything.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step % 2:
        outputs = []
        everything.eval()
        with torch.no_grad():
            for _ in range(4):
                x, y = batch()
                outputs.append(leave(stack(enter(x))).softmax(-1))
        truth.label("other", outputs)
        truth.mark("validated")
        everything.train()
        del outputs
