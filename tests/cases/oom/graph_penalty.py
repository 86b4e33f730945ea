# env: SIMGPU_MEMORY=2GiB
# expect: oom leak graph
# advice: keep loss.item()
"""A history of losses for a plot; each still has its graph, as the batches need gradients too."""
from scene import GPU, REPAIRED, F, nn, torch

net = nn.GRU(128, 256, batch_first=True).to(GPU)
head = nn.Linear(256, 10).to(GPU)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
history = {"loss": [], "penalty": []}
for step in range(400):
    x = torch.randn(32, 64, 128, device=GPU)
    out, _ = net(x)
    loss = F.cross_entropy(head(out[:, -1]), torch.zeros(32, dtype=torch.long, device=GPU))
    penalty = out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    history["loss"].append(loss.item())
    history["penalty"].append(penalty.item() if REPAIRED else penalty)
