"""A VAE whose decoder is also the generator of a GAN: two optimizers, one graph gone through twice, and samples
kept for the log."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

LATENT, SIDE = 256, 32


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.BatchNorm2d(128),
            nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128 * 64, 1024), nn.ReLU(),
        )
        self.mean, self.log_variance = nn.Linear(1024, LATENT), nn.Linear(1024, LATENT)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_variance(h)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(LATENT, 128 * 64)
        self.body = nn.Sequential(
            nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1)
        )

    def forward(self, z):
        return self.body(F.relu(self.enter(z)).view(-1, 128, 8, 8)).sigmoid()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten()
        )
        self.out = nn.Linear(128 * 64, 1)

    def forward(self, x):
        features = self.features(x)
        return self.out(features), features


def draw(mean, log_variance):
    return mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)


encoder, decoder, critic = Encoder().cuda(), Decoder().cuda(), Critic().cuda()
generator_optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-4)
critic_optimizer = torch.optim.RMSprop(critic.parameters(), 1e-4)
log = []
for step in range(5):
    x = torch.rand(192, 3, SIDE, SIDE).cuda()
    truth.batch(x)
    mean, log_variance = encoder(x)
    made = decoder(draw(mean, log_variance))
    z = torch.randn(192, LATENT, device="cuda")
    truth.batch(z)
    dreamt = decoder(z)

    real, _ = critic(x)
    fake, _ = critic(torch.cat([made, dreamt]).detach())
    critic_loss = F.softplus(-real).mean() + F.softplus(fake).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()

    with torch.no_grad():
        _, wanted = critic(x)
    _, features = critic(made)
    verdict, _ = critic(dreamt)
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
    loss = F.mse_loss(features, wanted) + divergence + F.softplus(-verdict).mean()
    generator_optimizer.zero_grad()
    loss.backward()
    generator_optimizer.step()
    if step % 2 == 0:
        with torch.no_grad():
            pictures = decoder(torch.randn(64, LATENT, device="cuda"))
        truth.label("other", pictures)
        log.append(pictures)
        truth.mark("logged")
