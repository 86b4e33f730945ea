"""An image is what is trained, by L-BFGS with a closure, until the features of a frozen network match those of two
others, which are computed once and kept."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

SIDE = 256


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (3, 32, 64, 128)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        kept = []
        for layer in self.layers:
            x = F.relu(layer(x))
            kept.append(x)
            x = F.max_pool2d(x, 2)
        return kept


def gram(x):
    flat = x.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


network = Features().cuda().eval().requires_grad_(False)
content, style = torch.rand(1, 3, SIDE, SIDE).cuda(), torch.rand(1, 3, SIDE, SIDE).cuda()
truth.batch(content, style)
with torch.no_grad():
    wanted = network(content)[-1]
    manners = [gram(x) for x in network(style)]
truth.label("other", wanted, manners)
image = content.clone().requires_grad_(True)
truth.label("parameters", image)
optimizer = torch.optim.LBFGS([image], max_iter=4, history_size=6)


def closure():
    optimizer.zero_grad()
    found = network(image)
    loss = F.mse_loss(found[-1], wanted)
    for x, manner in zip(found, manners):
        loss = loss + 1e4 * F.mse_loss(gram(x), manner)
    loss.backward()
    return loss


for step in range(6):
    optimizer.step(closure)
    with torch.no_grad():
        image.clamp_(0, 1)
    truth.mark("image")
