"""A GPT trained with Muon, written by hand as a subclass of Optimizer, and AdamW for what is no matrix."""

import torch

import truth
from models import GPT, next_token_loss, token_ids


@torch.no_grad()
def orthogonal(gradient, rounds=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = gradient.bfloat16()
    if gradient.size(0) > gradient.size(1):
        x = x.T
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if gradient.size(0) > gradient.size(1) else x


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr=0.02, momentum=0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "buffer" not in state:
                    state["buffer"] = torch.zeros_like(p.grad)
                buffer = state["buffer"].lerp_(p.grad, 1 - group["momentum"])
                update = orthogonal(p.grad.lerp(buffer, group["momentum"]))
                p.add_(update.to(p.dtype), alpha=-group["lr"])


model = GPT(layers=4, width=768, heads=12).cuda()
matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
others = [p for p in model.parameters() if not any(p is m for m in matrices)]
optimizers = [Muon(matrices), torch.optim.AdamW(others, lr=3e-4)]
for _ in range(4):
    ids, targets = token_ids(4, 256).cuda(), token_ids(4, 256).cuda()
    truth.batch(ids, targets)
    loss = next_token_loss(model(ids), targets)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    model.zero_grad(set_to_none=True)
