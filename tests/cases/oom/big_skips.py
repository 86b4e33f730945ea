# env: SIMGPU_MEMORY=2GiB
# expect: oom too_big
# advice: half the batch
"""A U-Net in its first forward pass: what is idle between its blocks would do for this request, and for no more."""

from scene import GPU, REPAIRED, F, nn, step, torch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = (3, 32, 64, 128)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.up = nn.ModuleList(nn.Conv2d(a, 32, 3, padding=1) for a in (128, 96, 64))

    def forward(self, x):
        kept = []
        for conv in self.down:
            kept.append(F.relu(conv(x)))
            x = F.max_pool2d(kept[-1], 2)
        for conv, skip in zip(self.up, (None, kept[1], kept[0])):
            x = F.interpolate(x, scale_factor=2)
            x = F.relu(conv(x if skip is None else torch.cat([x, skip], 1)))
        return x


net = Net().to(GPU)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(3):
    step(optimizer, net(torch.empty(4 if REPAIRED else 16, 3, 512, 512).to(GPU)).square().mean())
