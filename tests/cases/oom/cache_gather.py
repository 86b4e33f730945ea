# env: SIMGPU_MEMORY=1GiB
# expect: oom leak cache or leak list
"""Evaluation joins the logits so far with those of each batch: old and new live at once."""

from scene import GPU, REPAIRED, nn, torch

head = nn.Linear(256, 16000, bias=False).to(GPU)
all_logits = None
with torch.no_grad():
    for _ in range(150):
        logits = head(torch.zeros(64, 256, device=GPU))
        if REPAIRED:
            logits = logits.argmax(-1)
        all_logits = logits if all_logits is None else torch.cat([all_logits, logits])
