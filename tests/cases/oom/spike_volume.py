# env: SIMGPU_MEMORY=2GiB
# expect: oom spike evaluation
# advice: for evaluation
"""Training sees patches; at validation the scores of a whole volume, for 14 organs, are put together on the GPU."""

from scene import GPU, REPAIRED, F, nn, step, torch

net = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 14, 3, padding=1)).to(GPU)
optimizer = torch.optim.AdamW(net.parameters())


@torch.no_grad()
def validate(depth, size=64):
    scores = torch.zeros(1, 14, depth, 320, 512, device=GPU)
    count = torch.zeros(1, 1, depth, 320, 512, device=GPU)
    for begin in range(0, depth, size):
        patch = torch.zeros(1, 1, size, size, size).to(GPU)
        scores[..., begin : begin + size, :size, :size] += net(patch)[..., : depth - begin, :, :]
        count[..., begin : begin + size, :size, :size] += 1
    return (scores / count).argmax(1)


for _ in range(2):
    for _ in range(12):
        x = torch.zeros(2, 1, 64, 64, 64).to(GPU)
        y = torch.zeros(2, 64, 64, 64, dtype=torch.long).to(GPU)
        step(optimizer, F.cross_entropy(net(x), y))
    for _ in range(4):
        validate(32 if REPAIRED else 128)
