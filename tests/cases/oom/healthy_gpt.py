# env: SIMGPU_MEMORY=8GiB
# expect: nothing
"""Fifty steps of a small GPT with AdamW, mixed precision and a learning-rate schedule."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from common import GPT, F, batch  # noqa: E402
from scene import GPU, torch  # noqa: E402

model = GPT(layers=2, width=192, heads=4).to(GPU)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
for _ in range(50):
    ids, targets = batch(2, 256)
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
    del logits
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)
