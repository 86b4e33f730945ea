"""Deep Q-learning from pictures: a state is the difference of two, made on the GPU, and stays in the replay memory, from
which batches are joined; the target network follows by its state_dict."""

import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


def network():
    layers = [nn.Conv2d(3, 16, 5, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 5, 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 7 * 20, 3)).cuda()


def screen():
    picture = torch.rand(1, 3, 40, 90).cuda()
    truth.batch(picture)
    return picture


def train(policy, target, optimizer, memory):
    states, actions, after, rewards = zip(*random.sample(memory, 32))
    states, actions, after, rewards = (torch.cat(part) for part in (states, actions, after, rewards))
    truth.batch(states, actions, after, rewards)
    with torch.no_grad():
        expected = rewards + 0.99 * target(after).max(1).values
    loss = F.smooth_l1_loss(policy(states).gather(1, actions)[:, 0], expected)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()


random.seed(0)
policy, target = network(), network()
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True)
memory = deque(maxlen=200)
for episode in range(3):
    last, current = screen(), screen()
    state = current - last
    truth.batch(state)
    for t in range(25):
        action = torch.tensor([[random.randrange(3)]], device="cuda")
        reward = torch.tensor([random.random()], device="cuda")
        last, current = current, screen()
        after = current - last
        truth.batch(action, reward, after)
        memory.append((state, action, after, reward))
        state = after
        if len(memory) < 32:
            continue
        train(policy, target, optimizer, memory)
        new, old = policy.state_dict(), target.state_dict()
        target.load_state_dict({k: 0.005 * new[k] + 0.995 * v for k, v in old.items()})
    truth.mark("episode")
