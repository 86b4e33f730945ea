"""A teacher without gradients, a student that is trained; the batch comes by its own stream."""

import torch
import torch.nn.functional as F

import truth
from models import GPT, VOCABULARY, token_ids

teacher = GPT(layers=4).cuda().eval().requires_grad_(False)
student = GPT(layers=2, width=256, heads=4).cuda()
optimizer = torch.optim.AdamW(student.parameters())
copying = torch.cuda.Stream()


def prefetch():
    with torch.cuda.stream(copying):
        ids = token_ids(4).pin_memory().cuda(non_blocking=True)
    truth.batch(ids)
    return ids


following = prefetch()
for _ in range(4):
    torch.cuda.current_stream().wait_stream(copying)
    ids = following
    ids.record_stream(torch.cuda.current_stream())
    following = prefetch()
    with torch.no_grad():
        wanted = F.log_softmax(teacher(ids) / 2, -1)
    found = F.log_softmax(student(ids) / 2, -1)
    loss = F.kl_div(found, wanted, log_target=True, reduction="sum") / VOCABULARY
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
