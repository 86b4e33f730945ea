# env: SIMGPU_MEMORY=4GiB
# expect: finding idle_cache
# advice: torch.cuda.empty_cache() once
"""Loading needs three quarters of the card for a moment; the rest of the run, a tenth of it."""

from scene import BYTES, MIB, REPAIRED, Mlp, batch, step, torch


def load_shards():
    return [torch.empty(256 * MIB, **BYTES) for _ in range(11)]


load_shards()
if REPAIRED:
    torch.cuda.empty_cache()
model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(30):
    step(optimizer, model(batch(4096)).square().mean())
