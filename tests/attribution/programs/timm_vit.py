# env: HF_HUB_OFFLINE=1
"""A vision transformer of timm with its optimizer factory and its moving average of the model."""

import timm
import torch
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

import truth

model = timm.create_model("vit_tiny_patch16_224", pretrained=False, num_classes=100).cuda()
average = ModelEmaV3(model, decay=0.99)
optimizer = create_optimizer_v2(model, opt="lamb", lr=1e-3, weight_decay=0.05)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
scaler = torch.amp.GradScaler("cuda")
for _ in range(3):
    x, y = torch.randn(16, 3, 224, 224).cuda(), torch.randint(0, 100, (16,)).cuda()
    truth.batch(x, y)
    with torch.autocast("cuda", torch.float16):
        loss = criterion(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    average.update(model)
