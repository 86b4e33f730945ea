"""Two networks, two optimizers, three backward passes an iteration."""

import torch
import torch.nn as nn

import truth


def network(*widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2)]
    return layers[:-1]


generator = nn.Sequential(*network(128, 1024, 2048, 3072), nn.Tanh()).to("cuda")
critic = nn.Sequential(*network(3072, 2048, 1024, 1)).to("cuda")
optimizer_g = torch.optim.Adam(generator.parameters(), 2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
fixed = torch.randn(64, 128, device="cuda")
truth.batch(fixed)
for _ in range(4):
    real = torch.randn(2048, 3072).to("cuda")
    truth.batch(real)
    optimizer_d.zero_grad()
    out = critic(real)
    ones = torch.full((2048, 1), 1.0, device="cuda")
    truth.batch(ones)
    loss_real = criterion(out, ones)
    loss_real.backward()
    noise = torch.randn(2048, 128, device="cuda")
    truth.batch(noise)
    fake = generator(noise)
    loss_fake = criterion(critic(fake.detach()), torch.zeros(2048, 1, device="cuda"))
    loss_fake.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss_g = criterion(critic(fake), ones)
    loss_g.backward()
    optimizer_g.step()
    with torch.no_grad():
        samples = generator(fixed).cpu()
