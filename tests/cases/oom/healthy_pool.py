# env: SIMGPU_MEMORY=2GiB
# expect: nothing
"""CycleGAN's pool of earlier images: it grows for most of the run, but only until it is full."""

import random

from scene import GPU, nn, torch

random.seed(1)
G = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 3, padding=1)).to(GPU)
D = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 1, 4, 2, 1)).to(GPU)
generator, discriminator = [torch.optim.Adam(net.parameters(), 2e-4) for net in (G, D)]
pool = []


def query(image):
    if len(pool) < 200:
        pool.append(image)
        return image
    at = random.randrange(200)
    old, pool[at] = pool[at], image
    return old


for _ in range(260):
    real = torch.randn(1, 3, 256, 256).to(GPU)
    fake = G(real)
    generator.zero_grad()
    D(fake).mean().backward()
    generator.step()
    discriminator.zero_grad()
    (D(real).mean() - D(query(fake.detach())).mean()).backward()
    discriminator.step()
