"""Direct preference optimization: a policy, a frozen copy of it, and pairs of answers; the fused
AdamW, accumulated over two batches."""

import copy

import torch
import torch.nn.functional as F

import truth
from models import GPT, token_ids

policy = GPT(layers=3).cuda()
reference = copy.deepcopy(policy).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-6, fused=True)


def log_probability(model, ids, mask):
    logits = model(ids)[:, :-1]
    logs = torch.gather(logits.log_softmax(-1), 2, ids[:, 1:, None]).squeeze(2)
    return (logs * mask[:, 1:]).sum(-1)


for step in range(6):
    good, bad = token_ids(2).cuda(), token_ids(2).cuda()
    mask = torch.ones(4, 512).cuda()
    ids = torch.cat([good, bad])
    truth.batch(good, bad, mask, ids)
    with torch.no_grad():
        before = log_probability(reference, ids, mask)
    now = log_probability(policy, ids, mask)
    gain = (now - before).view(2, 2)
    loss = -F.logsigmoid(0.1 * (gain[0] - gain[1])).mean() / 2
    loss.backward()
    if step % 2:
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
