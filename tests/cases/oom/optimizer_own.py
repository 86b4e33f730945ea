# env: SIMGPU_MEMORY=1100MiB
# expect: oom spike optimizer
# advice: one parameter after the other
"""An optimizer of one's own makes the updates of all layers first, with three temporaries each, and applies them then."""

from scene import REPAIRED, Mlp, batch, step, torch


class Preconditioned(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"every": 3})
        self.count = 0

    def precondition(self, p):
        left = self.state[p].setdefault("left", torch.zeros(len(p), len(p), device=p.device))
        left.add_(p.grad @ p.grad.T)
        roots = [left @ left, left.sqrt(), left.pow(0.25)] if self.count % 3 == 0 else [left]
        return p, roots, roots[-1] @ p.grad

    @torch.no_grad()
    def step(self):
        self.count += 1
        matrices = [p for p in self.param_groups[0]["params"] if p.dim() == 2]
        updates = map(self.precondition, matrices)
        for p, _, update in updates if REPAIRED else list(updates):
            p.add_(update, alpha=-0.1)


model = Mlp(2048, 12)
optimizer = Preconditioned(model.parameters())
for _ in range(6):
    step(optimizer, model(batch(512, 2048)).square().mean())
