# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: its clone()
"""Of each batch of sequences the states of the last place are kept, as a slice: all places stay."""

from scene import GPU, REPAIRED, batch, nn, step, torch

encoder = nn.LSTM(64, 512, batch_first=True).to(GPU)
head = nn.Linear(512, 10).to(GPU)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
kept = []
for _ in range(100):
    states, _ = encoder(batch(64 * 100, 64).view(64, 100, 64))
    last = states[:, -1]
    step(optimizer, head(last).square().mean())
    kept.append(last.detach().clone() if REPAIRED else last.detach())
