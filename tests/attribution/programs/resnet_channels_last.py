"""A residual network as in most repositories: arguments, channels_last, autocast with a scaler, SGD with Nesterov
momentum, a multi-step schedule, top-1 accuracy after each epoch and a checkpoint of the best."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

import truth


class Pictures(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.randn(3, 32, 32), index % 100


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, classes=100, width=64):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        layers, inputs = [], width
        for i, outputs in enumerate((width, 2 * width, 4 * width, 8 * width)):
            for j in range(2):
                layers.append(BasicBlock(inputs, outputs, 2 if i and not j else 1))
                inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.layers(self.stem(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def accuracy(output, target, topk=(1, 5)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100 / len(target)) for k in topk]


def train_one_epoch(loader, model, criterion, optimizer, scaler, device):
    losses, top1 = AverageMeter(), AverageMeter()
    model.train()
    for images, target in loader:
        images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
        target = target.to(device, non_blocking=True)
        truth.batch(images, target)
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(images)
            loss = criterion(output, target)
        acc1, _ = accuracy(output, target)
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return losses.avg


@torch.no_grad()
def validate(loader, model, criterion, device):
    losses, top1 = AverageMeter(), AverageMeter()
    model.eval()
    for images, target in loader:
        images = images.to(device, non_blocking=True).to(memory_format=torch.channels_last)
        target = target.to(device, non_blocking=True)
        truth.batch(images, target)
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(images)
            loss = criterion(output, target)
        acc1, _ = accuracy(output, target)
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))
    truth.mark("validated")
    return top1.avg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args([])
    device = torch.device("cuda:0")
    train_loader = DataLoader(Pictures(4 * args.batch_size), args.batch_size, shuffle=True, pin_memory=True)
    val_loader = DataLoader(Pictures(2 * args.batch_size), args.batch_size, pin_memory=True)
    model = ResNet().to(device, memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1])
    scaler = torch.amp.GradScaler("cuda")
    best = -1.0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(args.epochs):
            train_one_epoch(train_loader, model, criterion, optimizer, scaler, device)
            acc = validate(val_loader, model, criterion, device)
            scheduler.step()
            if acc > best:
                best = acc
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                torch.save(state, os.path.join(folder, "best.pt"))
        checkpoint = torch.load(os.path.join(folder, "best.pt"), map_location=device)
        model.load_state_dict(checkpoint["model"])
        truth.label("other", checkpoint["model"])
        truth.label("other", [list(s.values()) for s in checkpoint["optimizer"]["state"].values()])
        validate(val_loader, model, criterion, device)


if __name__ == "__main__":
    main()
