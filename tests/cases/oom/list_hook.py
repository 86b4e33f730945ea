# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: clear it
"""A forward hook saves activations for inspection, in every step, and nobody clears them."""

from scene import REPAIRED, Mlp, batch, step, torch

model = Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
hook = model.layers[1].register_forward_hook(lambda module, args, out: seen.append(out.detach()))
for _ in range(200):
    step(optimizer, model(batch(2048)).square().mean())
    if REPAIRED:
        hook.remove()
