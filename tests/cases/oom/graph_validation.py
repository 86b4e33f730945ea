# env: SIMGPU_MEMORY=3GiB
# expect: oom leak graph or spike evaluation
# advice: torch.no_grad()
# never: checkpointing
"""Validation without no_grad() and in no function of its own: each output in the list has its graph."""

from scene import GPU, REPAIRED, nn, step, torch

model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(1024, 1024), nn.GELU())]).to(GPU)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    for _ in range(10):
        step(optimizer, model(torch.randn(1024, 1024, device=GPU)).square().mean())
    outputs = []
    with torch.set_grad_enabled(not REPAIRED):
        for _ in range(80):
            outputs.append(model(torch.randn(1024, 1024, device=GPU)))
    torch.stack([output.detach().mean() for output in outputs]).mean().item()
    del outputs
