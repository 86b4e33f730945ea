"""Segmentation by a U-Net under autocast, with GradScaler, gradients added up over two batches, and the
loss of overlap; every second step an evaluation whose masks are kept to the end of it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class Double(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, classes=4, widths=(32, 64, 128, 256)):
        super().__init__()
        self.down = nn.ModuleList(Double(a, b) for a, b in zip((3, *widths), widths))
        self.pool = nn.MaxPool2d(2)
        back = widths[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in zip(back, back[1:]))
        self.join = nn.ModuleList(Double(2 * b, b) for b in back[1:])
        self.out = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([skips.pop(), up(x)], dim=1))
        return self.out(x)


def dice_loss(logits, masks):
    shares = F.softmax(logits, 1).float()
    wanted = F.one_hot(masks, logits.shape[1]).permute(0, 3, 1, 2).float()
    both = (shares * wanted).sum((0, 2, 3))
    return 1 - (2 * both / (shares.sum((0, 2, 3)) + wanted.sum((0, 2, 3)) + 1e-6)).mean()


def load():
    images = torch.rand(4, 3, 128, 128).to("cuda", memory_format=torch.channels_last)
    masks = torch.randint(0, 4, (4, 128, 128)).to("cuda")
    truth.batch(images, masks)
    return images, masks


@torch.inference_mode()
def validate():
    net.eval()
    scores = []
    for _ in range(2):
        images, masks = load()
        with torch.autocast("cuda", dtype=torch.float16):
            found = net(images).argmax(1)
        scores.append((found == masks).float().mean())
    net.train()
    return torch.stack(scores).mean()


net = UNet().to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.9, foreach=True)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
scaler = torch.amp.GradScaler("cuda")
ACCUMULATE = 2
optimizer.zero_grad(set_to_none=True)
for i in range(8):
    images, masks = load()
    with torch.autocast("cuda", dtype=torch.float16):
        logits = net(images)
        loss = (F.cross_entropy(logits, masks) + dice_loss(logits, masks)) / ACCUMULATE
    scaler.scale(loss).backward()
    if (i + 1) % ACCUMULATE == 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    if (i + 1) % 4 == 0:
        scheduler.step(validate().item())
