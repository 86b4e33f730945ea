"""A compiled model (aot_eager) is fine-tuned in bf16 autocast with accumulation, then serves under inference mode,
and trains on."""

import torch
import torch.nn as nn

import truth
from models import GPT, next_token_loss, token_ids

model = GPT(layers=3, width=512).cuda()
for p in model.tokens.parameters():
    p.requires_grad_(False)
trained = [p for p in model.parameters() if p.requires_grad]
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.AdamW(trained, lr=1e-4, foreach=True)
for step in range(4):
    for micro in range(2):
        ids, targets = token_ids(4, 256).cuda(), token_ids(4, 256).cuda()
        truth.batch(ids, targets)
        with torch.autocast("cuda", torch.bfloat16):
            logits = compiled(ids)
            loss = next_token_loss(logits, targets) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step == 1:
        with torch.inference_mode():
            answers = [compiled(ids).argmax(-1) for _ in range(3)]
        truth.label("other", answers)
        truth.mark("served")
