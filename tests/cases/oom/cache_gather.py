# env: SIMGPU_MEMORY=1GiB
# expect: oom leak cache or leak list
# advice: a fixed or paged cache
"""Evaluation joins the logits so far with those of each batch: old and new live at once."""

from scene import GPU, REPAIRED, nn, torch

head = nn.Linear(256, 16000, bias=False).to(GPU)
all_logits = torch.empty(150 * 64 if REPAIRED else 0, 16000, device=GPU)
with torch.no_grad():
    for number in range(150):
        logits = head(torch.zeros(64, 256, device=GPU))
        if REPAIRED:
            all_logits[number * 64 : (number + 1) * 64] = logits
        else:
            all_logits = torch.cat([all_logits, logits])
