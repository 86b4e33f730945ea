"""A small network learns from a large one: soft answers and, through forward hooks, features of the middle."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


def network(widths, classes=100):
    layers, inside = [], 3
    for width in widths:
        layers.append(
            nn.Sequential(
                nn.Conv2d(inside, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
                nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            )
        )  # fmt: skip
        inside = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


class Hooked:
    def __init__(self, net, places):
        self.seen = {}
        for place in places:
            net[place].register_forward_hook(self.keeping(place))

    def keeping(self, place):
        def hook(module, inputs, output):
            self.seen[place] = output

        return hook


teacher = network((64, 128, 256, 512)).cuda().eval()
student = network((32, 64, 128, 256)).cuda()
adapters = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in ((64, 128), (128, 256))).cuda()
of_teacher, of_student = Hooked(teacher, (1, 2)), Hooked(student, (1, 2))
for p in teacher.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD([*student.parameters(), *adapters.parameters()], lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
for step in range(5):
    x, y = torch.rand(64, 3, 64, 64), torch.randint(0, 100, (64,))
    x, y = x.to("cuda"), y.to("cuda")
    truth.batch(x, y)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 4.0, dim=1)
    logits = student(x)
    loss = F.cross_entropy(logits, y)
    loss = loss + 16 * F.kl_div(F.log_softmax(logits / 4.0, dim=1), soft, reduction="batchmean")
    for adapter, place in zip(adapters, (1, 2)):
        loss = loss + 0.1 * F.mse_loss(adapter(of_student.seen[place]), of_teacher.seen[place])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
