"""No optimizer: each gradient is applied and dropped by a hook while backward goes on."""

import torch

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=4).cuda()


def apply(p):
    truth.label("gradients", p.grad)
    with torch.no_grad():
        p.sub_(p.grad, alpha=1e-3)
    p.grad = None


for p in model.parameters():
    p.register_post_accumulate_grad_hook(apply)
for _ in range(3):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    next_token_loss(model(ids), targets).backward()
