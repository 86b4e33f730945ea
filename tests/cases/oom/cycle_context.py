# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list or leak cycle
# advice: ctx.save_for_backward(x)
"""A function of one's own keeps its output as ctx.out: output, node and context hold each other; the collector is off."""

from scene import REPAIRED, Mlp, batch, gc, step, torch

gc.disable()


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.sigmoid()
        if REPAIRED:
            ctx.save_for_backward(out)
        else:
            ctx.out = out
        return out

    @staticmethod
    def backward(ctx, grad):
        out = ctx.saved_tensors[0] if REPAIRED else ctx.out
        return grad * out * (1 - out)


model = Mlp()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(300):
    step(optimizer, Gate.apply(model(batch(2048))).square().mean())
