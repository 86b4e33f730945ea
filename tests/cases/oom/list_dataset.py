# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: move what is kept to the CPU
"""All images of a data set are moved to the GPU before training; two of them fill three quarters of a segment."""

from scene import GPU, REPAIRED, nn, step, torch

images = [torch.empty(3, 256, 256) for _ in range(8)] * 150
store = [image if REPAIRED else image.to(GPU) for image in images]
net = nn.Conv2d(3, 8, 3, 2).to(GPU)
optimizer = torch.optim.Adam(net.parameters())
for begin in range(0, 160, 16):
    x = torch.stack([image.to(GPU) for image in store[begin : begin + 16]])
    step(optimizer, net(x).square().mean())
