"""An Adam of one's own whose moments are made at the first step, kept in a dictionary by parameter."""

import torch
import torch.nn as nn

import truth
from models import GPT, next_token_loss, token_ids


class Adam:
    def __init__(self, named, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.named, self.lr, self.betas, self.eps, self.t, self.state = dict(named), lr, betas, eps, 0, {}

    def step(self):
        self.t += 1
        with torch.no_grad():
            for name, p in self.named.items():
                if p.grad is None:
                    continue
                if name not in self.state:
                    self.state[name] = {"m": torch.zeros_like(p), "v": torch.zeros_like(p)}
                    truth.label("optimizer_state", self.state[name])
                s = self.state[name]
                s["m"] = self.betas[0] * s["m"] + (1 - self.betas[0]) * p.grad
                s["v"] = self.betas[1] * s["v"] + (1 - self.betas[1]) * p.grad**2
                truth.label("optimizer_state", s)
                m_hat = s["m"] / (1 - self.betas[0] ** self.t)
                v_hat = s["v"] / (1 - self.betas[1] ** self.t)
                p -= self.lr * m_hat / (v_hat.sqrt() + self.eps)

    def zero_grad(self):
        for p in self.named.values():
            p.grad = None


def train(steps=6):
    torch.manual_seed(0)
    model = GPT(layers=3, width=512).to("cuda")
    optimizer = Adam(model.named_parameters())
    for step in range(steps):
        ids = token_ids(4, 257)
        x, y = ids[:, :-1].to("cuda"), ids[:, 1:].to("cuda")
        truth.batch(x, y)
        optimizer.zero_grad()
        loss = next_token_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        truth.mark("stepped")
        print(step, loss.item())


train()
