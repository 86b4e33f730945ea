# env: SIMGPU_MEMORY=1GiB
# expect: oom duplicate
# advice: change the weights in place
# says: second copy of a part of the weights
# never: checkpointing batch
"""Adapters are merged into new weights while the old ones are still there."""

from scene import GPU, REPAIRED, Mlp, torch

model = Mlp(2048, 30)
pairs = [(torch.zeros(2048, 8, device=GPU), torch.zeros(8, 2048, device=GPU)) for _ in model.layers]
merged = {}
with torch.no_grad():
    for number, (layer, (a, b)) in enumerate(zip(model.layers, pairs)):
        if REPAIRED:
            layer.weight += a @ b
        else:
            merged[f"layers.{number}.weight"] = layer.weight + a @ b
    model.load_state_dict(merged, strict=False)
    model(torch.zeros(16, 2048, device=GPU))
