"""A bf16 model whose fp32 weights and moments are kept by the program's own AdamW, written with plain tensors."""

import torch

import truth
from models import GPT, next_token_loss, token_ids


class MasterAdamW:
    def __init__(self, params, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.t = 0
        self.master = [p.detach().clone().float() for p in self.params]
        self.m = [torch.zeros_like(p) for p in self.master]
        self.v = [torch.zeros_like(p) for p in self.master]
        truth.label("parameters", self.master)
        truth.label("optimizer_state", self.m, self.v)

    @torch.no_grad()
    def clip(self, most=1.0):
        norms = torch.stack([p.grad.float().norm() for p in self.params])
        total = norms.norm()
        scale = (most / (total + 1e-6)).clamp(max=1.0)
        for p in self.params:
            p.grad.mul_(scale)
        return total

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for p, w, m, v in zip(self.params, self.master, self.m, self.v):
            g = p.grad.float()
            m.mul_(b1).add_(g, alpha=1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            mhat = m / (1 - b1**self.t)
            vhat = v / (1 - b2**self.t)
            w.mul_(1 - self.lr * self.weight_decay)
            w.addcdiv_(mhat, vhat.sqrt() + self.eps, value=-self.lr)
            p.copy_(w)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def main():
    torch.manual_seed(0)
    model = GPT(layers=4, width=640, heads=10).to(device="cuda", dtype=torch.bfloat16)
    optimizer = MasterAdamW(model.parameters())
    for step in range(5):
        x, y = token_ids(6, 256), token_ids(6, 256)
        x, y = x.cuda(), y.cuda()
        truth.batch(x, y)
        logits = model(x)
        loss = next_token_loss(logits.float(), y)
        loss.backward()
        norm = optimizer.clip()
        optimizer.step()
        truth.mark("stepped")
        optimizer.zero_grad()
        print(step, loss.item(), norm.item())


main()
