"""A fast classifier of small images: a loader object keeps the whole set on the GPU, in half precision and already
normalised, pads, crops and flips it there each epoch, and hands out slices by a random order."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

MEAN, STD = torch.tensor((0.4914, 0.4822, 0.4465)), torch.tensor((0.2470, 0.2435, 0.2616))


def batch_flip_lr(images):
    mask = (torch.rand(len(images), device=images.device) < 0.5).view(-1, 1, 1, 1)
    return torch.where(mask, images.flip(-1), images)


def batch_crop(images, size):
    r = (images.size(-1) - size) // 2
    shifts = torch.randint(-r, r + 1, size=(len(images), 2)).tolist()
    out = torch.empty((len(images), 3, size, size), device=images.device, dtype=images.dtype)
    for i in range(0, len(images), 512):
        dy, dx = shifts[i]
        out[i : i + 512] = images[i : i + 512, :, r + dy : r + dy + size, r + dx : r + dx + size]
    return out


class CifarLoader:
    def __init__(self, images, labels, train, batch_size):
        self.images, self.labels = images.to("cuda"), labels.to("cuda")
        self.images = (self.images.half() / 255).permute(0, 3, 1, 2).to(memory_format=torch.channels_last)
        mean, std = MEAN.to("cuda").half().view(1, 3, 1, 1), STD.to("cuda").half().view(1, 3, 1, 1)
        self.images = (self.images - mean) / std
        truth.batch(self.images, self.labels)
        self.train, self.batch_size, self.epoch, self.padded = train, batch_size, 0, None

    def __len__(self):
        return len(self.images) // self.batch_size

    def __iter__(self):
        images = self.images
        if self.train:
            if self.padded is None:
                flipped = batch_flip_lr(images)
                truth.batch(flipped)
                self.padded = F.pad(flipped, (2,) * 4, "reflect")
                truth.batch(self.padded)
            images = batch_crop(self.padded, 32)
            if self.epoch % 2 == 1:
                images = images.flip(-1)
            truth.batch(images)
            self.epoch += 1
        order = torch.randperm if self.train else torch.arange
        indices = order(len(images), device=images.device)
        truth.batch(indices)
        for i in range(len(self)):
            idxs = indices[i * self.batch_size : (i + 1) * self.batch_size]
            x, y = images[idxs], self.labels[idxs]
            truth.batch(x, y)
            yield x, y


class ConvGroup(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(
            nn.Conv2d(a, b, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(b), nn.GELU(),
            nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.GELU(),
        )  # fmt: skip


def main():
    raw = torch.randint(0, 256, (8192, 32, 32, 3), dtype=torch.uint8)
    labels = torch.randint(0, 10, (8192,))
    train = CifarLoader(raw, labels, True, 512)
    test = CifarLoader(raw[:2048], labels[:2048], False, 512)
    net = nn.Sequential(ConvGroup(3, 32), ConvGroup(32, 64), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    net = net.half().cuda().to(memory_format=torch.channels_last)
    for mod in net.modules():
        if isinstance(mod, nn.BatchNorm2d):
            mod.float()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.85, nesterov=True)
    for epoch in range(2):
        net.train()
        for i, (inputs, targets) in enumerate(train):
            outputs = net(inputs)
            loss = F.cross_entropy(outputs, targets, label_smoothing=0.2, reduction="none").sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if i == 5:
                break
        net.eval()
        with torch.no_grad():
            hits = [(net(x).argmax(1) == y).float().mean() for x, y in test]
        truth.mark("evaluated")
    torch.stack(hits).mean().item()


main()
