"""bitsandbytes' Adam, whose states are a byte a value: its own kernels, memory from PyTorch."""

import bitsandbytes
from common import done, nn, torch

model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
optimizer = bitsandbytes.optim.Adam8bit(model.parameters())
for _ in range(3):
    model(torch.empty(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
# Two states for each parameter: bytes from 4,096 values on, below that floats.
done(__file__, states_bytes=2 * (2 * 4096 * 1024 + 4096 + 4 * 1024))
