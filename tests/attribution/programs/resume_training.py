"""Training that goes on from a checkpoint of model, optimizer and moving average, read straight onto the GPU;
the checkpoint stays in a variable for some steps, as it often does."""

import copy
import os
import tempfile

import torch

import truth
from models import GPT, next_token_loss, token_ids


def build():
    model = GPT(layers=3, width=512)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def write(path):
    model, optimizer = build()
    state = {
        number: {"step": torch.tensor(7.0), "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
        for number, p in enumerate(model.parameters())
    }
    groups = optimizer.state_dict()["param_groups"]
    slow = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer_state = {"state": state, "param_groups": groups}
    torch.save({"model": model.state_dict(), "optimizer": optimizer_state, "slow": slow, "step": 7}, path)


path = os.path.join(tempfile.mkdtemp(), "last.pt")
write(path)
model, optimizer = build()
model.cuda()
checkpoint = torch.load(path, map_location="cuda")
truth.label("other", checkpoint["slow"], checkpoint["model"])
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
slow = checkpoint["slow"]
truth.mark("loaded")
for step in range(checkpoint["step"], checkpoint["step"] + 5):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    loss = next_token_loss(model(ids), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            slow[name].lerp_(value, 0.01)
    if step == 9:
        del checkpoint
        truth.mark("dropped")
best = copy.deepcopy(model.state_dict())
truth.label("other", best)
truth.mark("best")
os.unlink(path)
