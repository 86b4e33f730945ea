"""Deep image prior: one image, fixed noise as input with a little more noise each step, an hourglass of
convolutions with skips, a running average of the outputs, and the best output kept."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class Skip(nn.Module):
    def __init__(self, i=32, w=(32, 64, 128), s=4):
        super().__init__()
        block = lambda a, b, st=1: nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(a, b, 3, st), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, inplace=True)
        )
        c = (i, *w)
        self.down = nn.ModuleList(nn.Sequential(block(a, b, 2), block(b, b)) for a, b in zip(c, c[1:]))
        self.skip = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, s, 1), nn.BatchNorm2d(s), nn.LeakyReLU(0.2, inplace=True))
            for a in c[:-1]
        )
        self.up = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(b + s), block(b + s, a)) for a, b in zip(c, c[1:])
        )
        self.out = nn.Sequential(nn.Conv2d(i, 3, 1), nn.Sigmoid())

    def forward(self, x):
        skips = []
        for d, s in zip(self.down, self.skip):
            skips.append(s(x))
            x = d(x)
        for u, s in zip(reversed(self.up), reversed(skips)):
            x = u(torch.cat([F.interpolate(x, scale_factor=2, mode="bilinear"), s], 1))
        return self.out(x)


net = Skip().type(torch.cuda.FloatTensor)
noisy = torch.rand(1, 3, 256, 256).cuda()
net_input = torch.rand(1, 32, 256, 256).cuda() * 0.1
saved = net_input.detach().clone()
noise = net_input.detach().clone()
truth.batch(noisy, net_input, saved, noise)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
average, best = None, None


def closure():
    global net_input, average, best
    net_input = saved + noise.normal_() * 0.03
    truth.batch(net_input)
    out = net(net_input)
    average = out.detach() if average is None else average * 0.99 + out.detach() * 0.01
    truth.label("other", average)
    loss = F.mse_loss(out, noisy)
    loss.backward()
    best = out.detach().clone()
    truth.label("other", best)
    return loss


for i in range(8):
    optimizer.zero_grad()
    closure()
    optimizer.step()
