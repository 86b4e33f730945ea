"""ResNet-50, SGD with momentum. CASE_BENCHMARK=1: cuDNN tries its algorithms, each with a
workspace of its own. CASE_CHANNELS_LAST=1: channels last, under autocast."""

import torchvision

from common import F, done, os, torch

torch.backends.cudnn.benchmark = os.environ.get("CASE_BENCHMARK") == "1"
channels_last = os.environ.get("CASE_CHANNELS_LAST") == "1"
layout = torch.channels_last if channels_last else torch.contiguous_format

model = torchvision.models.resnet50().cuda().to(memory_format=layout)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
for _ in range(3):
    pictures = torch.empty(16, 3, 224, 224).cuda().to(memory_format=layout)
    labels = torch.randint(0, 1000, (16,)).cuda()
    with torch.autocast("cuda", torch.bfloat16, enabled=channels_last):
        loss = F.cross_entropy(model(pictures), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
done(__file__)
