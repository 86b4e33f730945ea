"""Deep Q-learning as PyTorch's tutorial writes it: a memory of named tuples of tensors on the GPU,
joined for each batch; the target net follows through its state dict; gradients are clipped by value."""

import math
import random
from collections import deque, namedtuple
from itertools import count

import torch
import torch.nn as nn
import torch.optim as optim

import truth

random.seed(0)
device = torch.device("cuda")
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
OBS, ACTS, BATCH_SIZE, GAMMA, TAU = (4, 42, 42), 6, 32, 0.99, 0.005


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_actions):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 32, 4, 2), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten())
        self.layer2, self.layer3 = nn.Linear(64 * 81, 512), nn.Linear(512, n_actions)

    def forward(self, x):
        return self.layer3(torch.relu(self.layer2(self.conv(x))))


policy_net, target_net = DQN(ACTS).to(device), DQN(ACTS).to(device)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-4, amsgrad=True)
memory = ReplayMemory(10000)
steps_done = 0


def observation():
    state = torch.tensor(torch.rand(OBS).tolist(), dtype=torch.float32, device=device).unsqueeze(0)
    truth.batch(state)
    return state


def select_action(state):
    global steps_done
    sample = random.random()
    eps_threshold = 0.05 + 0.85 * math.exp(-1.0 * steps_done / 20)
    steps_done += 1
    if sample > eps_threshold:
        with torch.no_grad():
            action = policy_net(state).max(1).indices.view(1, 1)
    else:
        action = torch.tensor([[random.randrange(ACTS)]], device=device, dtype=torch.long)
    truth.batch(action)
    return action


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    transitions = memory.sample(BATCH_SIZE)
    batch = Transition(*zip(*transitions))
    non_final_mask = torch.tensor(tuple(s is not None for s in batch.next_state), device=device, dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch = torch.cat(batch.state)
    action_batch = torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    truth.batch(non_final_mask, non_final_next_states, state_batch, action_batch, reward_batch)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    with torch.no_grad():
        next_state_values = target_net(non_final_next_states).max(1).values
    expected = (next_state_values * GAMMA) + reward_batch
    criterion = nn.SmoothL1Loss()
    loss = criterion(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


for i_episode in range(3):
    state = observation()
    for t in count():
        action = select_action(state)
        reward = torch.tensor([random.random()], device=device)
        truth.batch(reward)
        next_state = observation()
        memory.push(state, action, next_state, reward)
        state = next_state
        optimize_model()
        target_dict, policy_dict = target_net.state_dict(), policy_net.state_dict()
        for key in policy_dict:
            target_dict[key] = policy_dict[key] * TAU + target_dict[key] * (1 - TAU)
        truth.label("other", target_dict)
        target_net.load_state_dict(target_dict)
        if t == 25:
            break
    truth.mark("episode")
