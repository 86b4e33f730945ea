"""An energy-based model: samples are drawn by Langevin steps along the energy's gradient, starting from a
replay buffer on the GPU, with the parameters frozen meanwhile; the loss contrasts data and samples."""

import random

import torch
import torch.nn as nn

import truth


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def energy(width=48):
    return nn.Sequential(
        nn.Conv2d(3, width, 5, 2, 4), Swish(), nn.Conv2d(width, 2 * width, 3, 2, 1), Swish(),
        nn.Conv2d(2 * width, 4 * width, 3, 2, 1), Swish(), nn.Conv2d(4 * width, 4 * width, 3, 2, 1), Swish(),
        nn.Flatten(), nn.LazyLinear(256), Swish(), nn.Linear(256, 1),
    )  # fmt: skip


class Sampler:
    def __init__(self, model, shape, size, kept=2048, device="cuda"):
        self.model, self.shape, self.size, self.kept, self.device = model, shape, size, kept, device
        self.examples = [(torch.rand((1,) + shape) * 2 - 1).to(device) for _ in range(size)]
        truth.label("other", self.examples)

    def sample_new(self, steps=12, step_size=10.0):
        n = int((torch.rand(self.size) < 0.05).sum())
        fresh = torch.rand((n,) + self.shape, device=self.device) * 2 - 1
        old = torch.cat(random.choices(self.examples, k=self.size - n), dim=0)
        start = torch.cat([fresh, old], dim=0).detach()
        images = Sampler.generate(self.model, start, steps, step_size)
        self.examples = list(images.split(1)) + self.examples
        self.examples = self.examples[: self.kept]
        truth.label("other", self.examples)
        return images

    @staticmethod
    def generate(model, images, steps, step_size, return_path=False):
        was_training = model.training
        model.eval()
        for p in model.parameters():
            p.requires_grad = False
        images.requires_grad = True
        had = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        noise = torch.randn(images.shape, device=images.device)
        path = []
        for _ in range(steps):
            noise.normal_(0, 0.005)
            images.data.add_(noise.data)
            images.data.clamp_(min=-1.0, max=1.0)
            out = -model(images)
            out.sum().backward()
            images.grad.data.clamp_(-0.03, 0.03)
            images.data.add_(-step_size * images.grad.data)
            images.grad.detach_()
            images.grad.zero_()
            images.data.clamp_(min=-1.0, max=1.0)
            if return_path:
                path.append(images.clone().detach())
        for p in model.parameters():
            p.requires_grad = True
        model.train(was_training)
        torch.set_grad_enabled(had)
        return torch.stack(path, dim=0) if return_path else images.detach()


torch.manual_seed(0)
random.seed(0)
model = energy().cuda()
model(torch.zeros(1, 3, 64, 64, device="cuda"))
sampler = Sampler(model, (3, 64, 64), 96)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.0, 0.999))
for epoch in range(2):
    for _ in range(3):
        real = torch.rand(96, 3, 64, 64).cuda()
        truth.batch(real)
        real.add_(torch.randn_like(real) * 0.005).clamp_(min=-1.0, max=1.0)
        fake = sampler.sample_new()
        both = torch.cat([real, fake], dim=0)
        real_out, fake_out = model(both).chunk(2, dim=0)
        loss = 0.1 * (real_out**2 + fake_out**2).mean() + fake_out.mean() - real_out.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    truth.mark("epoch")
start = torch.rand((8, 3, 64, 64), device="cuda") * 2 - 1
torch.set_grad_enabled(False)
Sampler.generate(model, start, 8, 10.0, return_path=True)
truth.mark("path")
