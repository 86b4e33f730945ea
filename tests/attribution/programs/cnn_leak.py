"""Two classic leaks: losses kept with their graphs, and evaluation outputs kept with theirs."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

torch.backends.cudnn.enabled = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(64)
        self.conv2 = nn.Conv2d(64, 128, 3, padding=1, stride=2)
        self.norm2 = nn.BatchNorm2d(128)
        self.conv3 = nn.Conv2d(128, 256, 3, padding=1, stride=2)
        self.out = nn.Linear(256, 1000)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)), inplace=True)
        x = F.relu(self.conv3(x))
        return self.out(x.mean((2, 3)))


net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
losses, total, outputs = [], 0, []
for _ in range(6):
    x, y = torch.randn(32, 3, 64, 64).cuda(), torch.randint(0, 1000, (32,)).cuda()
    truth.batch(x, y)
    out = net(x)
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
    total = total + loss
    held_out = torch.randn(8, 3, 64, 64).cuda()
    truth.batch(held_out)
    outputs.append(net(held_out))
    truth.mark("leak")
