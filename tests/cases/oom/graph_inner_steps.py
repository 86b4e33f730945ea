# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: loss.item() or x.detach()
"""MAML of the second order, without modules: the graphs of 80 inner steps wait for the outer backward."""

from scene import GPU, REPAIRED, F, torch

weights = [torch.zeros(512, 512, device=GPU, requires_grad=True) for _ in range(4)]
optimizer = torch.optim.Adam(weights)


def loss(used):
    x = torch.zeros(512, 512, device=GPU)
    for weight in used:
        x = F.relu(F.linear(x, weight))
    return x.square().mean()


for _ in range(3):
    fast = weights
    for _ in range(80):
        gradients = torch.autograd.grad(loss(fast), fast, create_graph=not REPAIRED)
        fast = [w - 0.1 * g for w, g in zip(fast, gradients)]
        if REPAIRED:
            fast = [w.detach().requires_grad_() for w in fast]
    optimizer.zero_grad()
    loss(fast).backward()
    optimizer.step()
