"""A frozen bf16 model read from a checkpoint file, with low-rank adapters that are trained."""

import pathlib
import tempfile

import torch
import torch.nn as nn

import truth
from models import GPT, next_token_loss, token_ids

torch.backends.cuda.enable_cudnn_sdp(False)


class LowRank(nn.Module):
    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(rank, base.in_features, device="cuda") * 0.01)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank, device="cuda"))

    def forward(self, x):
        return self.base(x) + (x @ self.a.t()) @ self.b.t()


model = GPT(width=768, layers=6)
with tempfile.TemporaryDirectory() as folder:
    saved = pathlib.Path(folder) / "model.pt"
    torch.save(model.state_dict(), saved)
    model = model.to("cuda", dtype=torch.bfloat16)
    model.load_state_dict(torch.load(saved, map_location="cuda"))
for parameter in model.parameters():
    parameter.requires_grad_(False)
for block in model.blocks:
    block.qkv = LowRank(block.qkv)
    block.up = LowRank(block.up)
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-3)
for _ in range(3):
    ids = token_ids(4, 513).cuda()
    x, y = ids[:, :-1], ids[:, 1:]
    truth.batch(ids)
    with torch.autocast("cuda", torch.bfloat16):
        loss = next_token_loss(model(x).float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
