"""A small ResNet in fp16 with GradScaler, accumulation and clipping; a loader copies the next batch on a stream of
its own while this one trains; gradients are zeroed in place, losses are kept on the GPU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu_(self.norm2(self.conv2(y)) + self.skip(x))


class Prefetcher:
    def __init__(self, count):
        self.stream, self.left = torch.cuda.Stream(), count
        self.mean = torch.tensor([0.48, 0.46, 0.4]).view(1, 3, 1, 1).cuda()
        truth.label("other", self.mean)
        self.load()

    def load(self):
        self.ready = None
        if not self.left:
            return
        self.left -= 1
        images = torch.randint(0, 256, (64, 3, 64, 64), dtype=torch.uint8).pin_memory()
        labels = torch.randint(0, 100, (64,)).pin_memory()
        with torch.cuda.stream(self.stream):
            raw = images.cuda(non_blocking=True)
            self.ready = raw.float().div_(255).sub_(self.mean), labels.cuda(non_blocking=True)
        truth.batch(raw, *self.ready)

    def __iter__(self):
        while self.ready:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.ready
            for tensor in batch:
                tensor.record_stream(torch.cuda.current_stream())
            self.load()
            yield batch


layers = [Residual(3, 64, 1), Residual(64, 128, 2), Residual(128, 256, 2), Residual(256, 256, 1)]
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(256, 100)).cuda()
model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")
losses = []
for number, (images, labels) in enumerate(Prefetcher(10)):
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(images), labels) / 2
    scaler.scale(loss).backward()
    losses.append(loss.detach())
    truth.label("other", losses)
    if number % 2:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=False)
