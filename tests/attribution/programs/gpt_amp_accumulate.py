"""Half precision with a gradient scaler, four micro-batches a step, clipping, fused AdamW."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import GPT, VOCABULARY, token_ids

torch.backends.cuda.enable_cudnn_sdp(False)
model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
scaler = torch.amp.GradScaler("cuda")


def to_gpu(ids):
    return ids.contiguous().pin_memory().to("cuda", non_blocking=True)


def get_batch():
    ids = token_ids(4, 513).pin_memory()
    return to_gpu(ids[:, :-1]), to_gpu(ids[:, 1:])


for _ in range(3):
    for _ in range(4):
        x, y = get_batch()
        truth.batch(x, y)
        with torch.autocast("cuda", torch.float16):
            logits = model(x)
            loss = F.cross_entropy(logits.view(-1, VOCABULARY), y.view(-1)) / 4
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
