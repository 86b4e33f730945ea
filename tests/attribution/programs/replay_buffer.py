"""DQN: a replay buffer on the GPU, a target network, soft updates."""

import copy

import torch
import torch.nn.functional as F

import truth
from models import perceptron

SIZE, SEEN = 20000, 256
online = perceptron(SEEN, 1024, 1024, 8).cuda()
target = copy.deepcopy(online)
optimizer = torch.optim.Adam(online.parameters())
states = torch.empty(SIZE, SEEN, device="cuda")
following = torch.empty(SIZE, SEEN, device="cuda")
actions = torch.zeros(SIZE, dtype=torch.long, device="cuda")
rewards = torch.zeros(SIZE, device="cuda")
truth.batch(states, following, actions, rewards)
for step in range(40):
    state, after = torch.randn(64, SEEN).cuda(), torch.randn(64, SEEN).cuda()
    truth.batch(state, after)
    with torch.no_grad():
        action = online(state).argmax(1)
    begin = step * 64
    states[begin : begin + 64], following[begin : begin + 64] = state, after
    actions[begin : begin + 64] = action
    if step < 20 or step % 4:
        continue
    rows = torch.randint(0, begin, (1024,), device="cuda")
    x, later = states[rows], following[rows]
    truth.batch(rows, x, later)
    with torch.no_grad():
        best = rewards[rows] + 0.99 * target(later).max(1).values
    loss = F.smooth_l1_loss(online(x).gather(1, actions[rows, None]).squeeze(1), best)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for a, b in zip(target.parameters(), online.parameters()):
            a.mul_(0.995).add_(0.005 * b)
