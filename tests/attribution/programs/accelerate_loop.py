"""The loop of accelerate's documentation: accumulation, clipping, a scheduler, bf16."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

import truth
from models import perceptron

accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16")
net = perceptron(1024, 4096, 4096, 10)
optimizer = torch.optim.AdamW(net.parameters())
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)
data = DataLoader(TensorDataset(torch.randn(4096, 1024), torch.randint(0, 10, (4096,))), 512)
net, optimizer, data, scheduler = accelerator.prepare(net, optimizer, data, scheduler)
criterion = torch.nn.CrossEntropyLoss()
for x, y in data:
    truth.batch(x, y)
    with accelerator.accumulate(net):
        loss = criterion(net(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
