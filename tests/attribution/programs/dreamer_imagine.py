"""A world model: a recurrent state-space model learns from sequences, then the actor and the critic learn
in imagined rollouts from its detached states; three optimizers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

DET, STO, ACT, OBS, EMB = 256, 32, 8, 512, 256


def mlp(i, o, h=256):
    return nn.Sequential(nn.Linear(i, h), nn.ELU(), nn.Linear(h, h), nn.ELU(), nn.Linear(h, o))


class RSSM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell = mlp(OBS, EMB), nn.GRUCell(STO + ACT, DET)
        self.prior, self.post = mlp(DET, 2 * STO), mlp(DET + EMB, 2 * STO)
        self.decode, self.reward = mlp(DET + STO, OBS), mlp(DET + STO, 1)

    def sample(self, stats):
        mean, std = stats.chunk(2, -1)
        std = F.softplus(std) + 0.1
        return mean + std * torch.randn_like(std), mean, std

    def step(self, h, s, a):
        return self.cell(torch.cat([s, a], -1), h)

    def observe(self, obs, act):
        T, B = obs.shape[:2]
        e = self.embed(obs)
        h, s = obs.new_zeros(B, DET), obs.new_zeros(B, STO)
        truth.batch(h, s)
        hs, ss, kl = [], [], 0
        for t in range(T):
            h = self.step(h, s, act[t])
            _, pm, ps = self.sample(self.prior(h))
            s, qm, qs = self.sample(self.post(torch.cat([h, e[t]], -1)))
            kl = kl + (torch.log(ps / qs) + (qs**2 + (qm - pm) ** 2) / (2 * ps**2) - 0.5).sum(-1).mean()
            hs.append(h)
            ss.append(s)
        return torch.stack(hs), torch.stack(ss), kl / T


device = torch.device("cuda:0")
world, actor, critic = RSSM().to(device), mlp(DET + STO, ACT).to(device), mlp(DET + STO, 1).to(device)
opts = [
    torch.optim.Adam(m.parameters(), lr, eps=1e-5) for m, lr in ((world, 6e-4), (actor, 8e-5), (critic, 8e-5))
]


def update(opt, module, loss):
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(module.parameters(), 100.0)
    opt.step()


for it in range(4):
    obs, act, rew = (
        torch.randn(24, 32, OBS).to(device),
        torch.randn(24, 32, ACT).to(device),
        torch.randn(24, 32, 1).to(device),
    )
    truth.batch(obs, act, rew)
    h, s, kl = world.observe(obs, act)
    feat = torch.cat([h, s], -1)
    loss = F.mse_loss(world.decode(feat), obs) + F.mse_loss(world.reward(feat), rew) + kl.clamp(min=1.0)
    update(opts[0], world, loss)
    h, s = h.detach().flatten(0, 1), s.detach().flatten(0, 1)
    for p in world.parameters():
        p.requires_grad = False
    feats = [torch.cat([h, s], -1)]
    for _ in range(6):
        a = torch.tanh(actor(feats[-1].detach()))
        h = world.step(h, s, a)
        s, _, _ = world.sample(world.prior(h))
        feats.append(torch.cat([h, s], -1))
    feats = torch.stack(feats)
    rewards, values = world.reward(feats), critic(feats)
    ret, returns = values[-1], []
    for t in reversed(range(6)):
        ret = rewards[t] + 0.99 * (0.05 * values[t + 1] + 0.95 * ret)
        returns.insert(0, ret)
    returns = torch.stack(returns)
    update(opts[1], actor, -returns.mean())
    update(opts[2], critic, F.mse_loss(critic(feats[:-1].detach()), returns.detach()))
    for p in world.parameters():
        p.requires_grad = True
