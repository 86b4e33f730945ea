# env: SIMGPU_MEMORY=2000MiB
# expect: oom too_big
# advice: half the batch
"""Adapters of rank 8 on a frozen model: almost no gradients, but all activations."""

from scene import GPU, REPAIRED, Mlp, batch, nn, step, torch


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = Mlp(1024, 16).requires_grad_(False)
        self.down = nn.ModuleList(nn.Linear(1024, 8, bias=False) for _ in range(16))
        self.up = nn.ModuleList(nn.Linear(8, 1024, bias=False) for _ in range(16))

    def forward(self, x):
        for layer, down, up in zip(self.frozen.layers, self.down, self.up):
            x = torch.relu(layer(x) + up(down(x)))
        return x


model = Adapted().to(GPU)
optimizer = torch.optim.AdamW([*model.down.parameters(), *model.up.parameters()])
for _ in range(2):
    step(optimizer, model(batch(2048 if REPAIRED else 24576, 1024)).square().mean())
