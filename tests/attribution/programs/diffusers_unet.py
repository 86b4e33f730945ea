# env: HF_HUB_OFFLINE=1
"""A small UNet of diffusers learns to remove noise; its EMAModel keeps an average."""

import torch
import torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel

import truth

model = UNet2DModel(
    sample_size=32,
    in_channels=3,
    out_channels=3,
    block_out_channels=(64, 128),
    layers_per_block=1,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
).cuda()
average = EMAModel(model.parameters(), decay=0.99)
truth.label("other", average.shadow_params)
scheduler = DDPMScheduler(1000)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    clean = torch.randn(16, 3, 32, 32).cuda()
    noise = torch.randn_like(clean)
    times = torch.randint(0, 1000, (16,), device="cuda")
    truth.batch(clean, noise, times)
    noisy = scheduler.add_noise(clean, noise, times)
    truth.batch(noisy)
    loss = F.mse_loss(model(noisy, times).sample, noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    average.step(model.parameters())
