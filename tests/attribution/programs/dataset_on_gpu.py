"""The whole dataset on the GPU, batches by index."""

import torch
import torch.nn.functional as F

import truth
from models import perceptron

images = torch.randint(0, 256, (20000, 3072), dtype=torch.uint8).cuda()
labels = torch.randint(0, 10, (20000,)).cuda()
truth.batch(images, labels)
net = perceptron(3072, 2048, 2048, 10).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for _ in range(5):
    order = torch.randint(0, 20000, (1024,), device="cuda")
    x = images[order].float().div_(255)
    y = labels[order]
    truth.batch(order, x, y)
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
