"""PPO: a rollout fills buffers on the GPU without gradients, then several epochs train on it."""

import torch
import torch.nn as nn

import truth

torch.distributions.Distribution.set_default_validate_args(False)  # of simulated values
STEPS, ENVIRONMENTS, SEEN = 64, 256, 512
device = "cuda"
actor = nn.Sequential(nn.Linear(SEEN, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh()).to(device)
policy, value = nn.Linear(1024, 16).to(device), nn.Linear(1024, 1).to(device)
parameters = [*actor.parameters(), *policy.parameters(), *value.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5)
observations = torch.zeros(STEPS, ENVIRONMENTS, SEEN, device=device)
actions = torch.zeros(STEPS, ENVIRONMENTS, device=device)
log_probabilities = torch.zeros(STEPS, ENVIRONMENTS, device=device)
rewards = torch.zeros(STEPS, ENVIRONMENTS, device=device)
values = torch.zeros(STEPS, ENVIRONMENTS, device=device)
truth.batch(observations, actions, log_probabilities, rewards, values)
seen = torch.randn(ENVIRONMENTS, SEEN).to(device)
truth.batch(seen)


def taken(store, rows):
    part = store[rows]
    truth.batch(part)
    return part


for _ in range(3):
    for step in range(STEPS):
        observations[step] = seen
        with torch.no_grad():
            hidden = actor(seen)
            choice = torch.distributions.Categorical(logits=policy(hidden))
            action = choice.sample()
            actions[step], values[step] = action, value(hidden).flatten()
            log_probabilities[step] = choice.log_prob(action)
        seen = torch.randn(ENVIRONMENTS, SEEN).to(device)
        rewards[step] = torch.randn(ENVIRONMENTS).to(device)
        truth.batch(seen)
    truth.mark("rollout")
    advantages = rewards - values
    returns = advantages + values
    truth.batch(advantages, returns)
    flat = observations.reshape(-1, SEEN)
    for _ in range(2):
        order = torch.randperm(STEPS * ENVIRONMENTS)
        for begin in range(0, len(order), 8192):
            part = order[begin : begin + 8192].to(device)
            truth.batch(part)
            hidden = actor(taken(flat, part))
            choice = torch.distributions.Categorical(logits=policy(hidden))
            log_ratio = choice.log_prob(actions.reshape(-1)[part])
            log_ratio = log_ratio - log_probabilities.reshape(-1)[part]
            loss = -(advantages.reshape(-1)[part] * log_ratio.exp()).mean()
            loss = loss + (value(hidden).flatten() - returns.reshape(-1)[part]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
