# env: SIMGPU_MEMORY=1GiB
# expect: oom leak cycle
# advice: gc.collect() after
"""Each trial makes a model whose hook refers to it: a cycle that waits for the collector, which the
program has turned off."""

from scene import REPAIRED, Mlp, batch, gc, step, torch

gc.disable()
for _ in range(40):
    model = Mlp(1024, 4)
    model.hook = model.register_forward_hook(lambda module, args, out, model=model: None)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        step(optimizer, model(batch(64, 1024)).square().mean())
    del model, optimizer
    if REPAIRED:
        gc.collect()
