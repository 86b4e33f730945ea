"""LoRA whose layers are the program's own, made on the GPU with uninitialised weights that stay frozen, in bf16; two
backwards to a step; then the model is asked without no_grad, and its answers are weighed."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

WIDTH = 1024


class LoRALinear(nn.Module):
    def __init__(self, rank=8):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(WIDTH, WIDTH), requires_grad=False)
        self.down, self.up = nn.Linear(WIDTH, rank, bias=False), nn.Linear(rank, WIDTH, bias=False)
        nn.init.kaiming_uniform_(self.weight)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return F.linear(x, self.weight) + 2 * self.up(self.down(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.query, self.value = nn.LayerNorm(WIDTH), LoRALinear(), LoRALinear()
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.out(torch.sigmoid(self.query(y)) * self.value(y))


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = nn.Sequential(*[Layer() for _ in range(4)])
torch.set_default_dtype(torch.float32)
for name, parameter in model.named_parameters():
    parameter.requires_grad_("down" in name or "up" in name)
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=3e-4, fused=True)
for number in range(8):
    x = torch.randn(512, WIDTH, dtype=torch.bfloat16).to("cuda")
    truth.batch(x)
    loss = model(x).float().pow(2).mean() / 2
    loss.backward()
    if number % 2:
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
questions = torch.randn(4096, WIDTH, dtype=torch.bfloat16).to("cuda")
truth.batch(questions)
weighed = [model(questions).pow(2).mean(1) for _ in range(3)]
truth.mark("asked")
