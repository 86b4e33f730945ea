# env: SIMGPU_MEMORY=1800MiB
# expect: oom duplicate
# advice: map_location='cpu'); del checkpoint
"""Resuming: torch.load puts the whole checkpoint on the GPU, and it stays in a variable while the model takes a
copy of its weights; the optimizer keeps the state that was read."""

import io

from scene import GPU, REPAIRED, Mlp, batch, step, torch


def saved():
    model = Mlp(2048, 16, "meta").to_empty(device="cpu")
    optimizer = torch.optim.AdamW(model.parameters())
    for p in model.parameters():
        moments = {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
        optimizer.state[p] = {"step": torch.tensor(5.0)} | moments
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    return file


checkpoint = torch.load(saved(), map_location="cpu" if REPAIRED else GPU)
model = Mlp(2048, 16)
model.load_state_dict(checkpoint["model"])
optimizer = torch.optim.AdamW(model.parameters())
optimizer.load_state_dict(checkpoint["optimizer"])
for _ in range(5):
    step(optimizer, model(batch(1024, 2048)).square().mean())
