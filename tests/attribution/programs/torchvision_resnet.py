"""ResNet-18 of torchvision, SGD without momentum, channels last, mixed precision."""

import torch
import torch.nn.functional as F
import torchvision

import truth

model = torchvision.models.resnet18().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(16, 3, 128, 128).cuda().to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (16,)).cuda()
    truth.batch(x, y)
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
