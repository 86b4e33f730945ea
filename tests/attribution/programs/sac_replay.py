"""Soft actor-critic: a ring of transitions on the GPU, two critics with their targets, three
optimizers, one of a single number."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import perceptron

SEEN, ACTS, HOLDS, BATCH = 376, 17, 30000, 2048


class Ring:
    def __init__(self):
        self.seen = torch.zeros((HOLDS, SEEN), device="cuda")
        self.after = torch.zeros((HOLDS, SEEN), device="cuda")
        self.acts = torch.zeros((HOLDS, ACTS), device="cuda")
        self.rewards = torch.zeros((HOLDS, 1), device="cuda")
        self.at = 0
        truth.batch(self.seen, self.after, self.acts, self.rewards)

    def add(self, seen, act, reward, after):
        place = self.at % HOLDS
        self.seen[place], self.acts[place] = seen, act
        self.rewards[place], self.after[place] = reward, after
        self.at += 1

    def draw(self):
        rows = torch.randint(0, min(self.at, HOLDS), (BATCH,), device="cuda")
        drawn = self.seen[rows], self.acts[rows], self.rewards[rows], self.after[rows]
        truth.batch(rows, *drawn)
        return drawn


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = perceptron(SEEN, 1024, 1024, 2 * ACTS)

    def forward(self, seen):
        mean, spread = self.body(seen).chunk(2, -1)
        spread = spread.clamp(-5, 2).exp()
        drawn = mean + spread * torch.randn_like(mean)
        log = -0.5 * ((drawn - mean) / spread) ** 2 - spread.log()
        return drawn.tanh(), log.sum(-1, keepdim=True)


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = perceptron(SEEN + ACTS, 1024, 1024, 1)
        self.two = perceptron(SEEN + ACTS, 1024, 1024, 1)

    def forward(self, seen, act):
        both = torch.cat([seen, act], -1)
        return self.one(both), self.two(both)


actor, critics = Actor().cuda(), Critics().cuda()
targets = copy.deepcopy(critics).requires_grad_(False)
log_alpha = torch.zeros(1, device="cuda", requires_grad=True)
of_actor = torch.optim.Adam(actor.parameters(), lr=3e-4)
of_critics = torch.optim.Adam(critics.parameters(), lr=3e-4)
of_alpha = torch.optim.Adam([log_alpha], lr=3e-4)
ring = Ring()
seen = torch.randn(SEEN).cuda()
truth.batch(seen)
for step in range(60):
    with torch.no_grad():
        act, _ = actor(seen[None])
    after, reward = torch.randn(SEEN).cuda(), torch.randn(1).cuda()
    truth.batch(after, reward)
    ring.add(seen, act[0], reward, after)
    seen = after
    if step < 50:
        continue
    x, a, r, y = ring.draw()
    with torch.no_grad():
        b, log_b = actor(y)
        one, two = targets(y, b)
        wanted = r + 0.99 * (torch.min(one, two) - log_alpha.exp() * log_b)
    q1, q2 = critics(x, a)
    critic_loss = F.mse_loss(q1, wanted) + F.mse_loss(q2, wanted)
    of_critics.zero_grad()
    critic_loss.backward()
    of_critics.step()
    c, log_c = actor(x)
    q1, q2 = critics(x, c)
    actor_loss = (log_alpha.exp().detach() * log_c - torch.min(q1, q2)).mean()
    of_actor.zero_grad()
    actor_loss.backward()
    of_actor.step()
    alpha_loss = -(log_alpha * (log_c.detach() + ACTS)).mean()
    of_alpha.zero_grad()
    alpha_loss.backward()
    of_alpha.step()
    with torch.no_grad():
        for p, q in zip(targets.parameters(), critics.parameters()):
            p.lerp_(q, 0.005)
