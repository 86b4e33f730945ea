# env: SIMGPU_MEMORY=1GiB
# expect: oom leak graph
# advice: x.detach()
"""A recurrent state that goes from step to step without detach(), so that every graph stays."""

from scene import GPU, REPAIRED, Mlp, batch, torch

cell, head = Mlp(), torch.nn.Linear(512, 16).to(GPU)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
state = torch.zeros(2048, 512, device=GPU)
for _ in range(100):
    x = batch(2048)
    state = cell(state.detach() + x if REPAIRED else state + x)
    loss = head(state).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
