"""PPO with a convolutional policy: the rollout is gathered in lists and stacked, advantages go backwards
over it, and minibatches of it are trained on in three epochs."""

import torch
import torch.nn as nn
from torch.distributions import Categorical

import truth

device = "cuda"
ENVS, STEPS, ACTIONS = 16, 16, 6


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, 512),
            nn.ReLU(),
        )
        self.actor, self.critic = nn.Linear(512, ACTIONS), nn.Linear(512, 1)

    def get_value(self, x):
        return self.critic(self.network(x / 255.0))

    def get_action_and_value(self, x, action=None):
        hidden = self.network(x / 255.0)
        probs = Categorical(logits=self.actor(hidden), validate_args=False)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(hidden)


agent = Agent().to(device)
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
next_obs = torch.rand(ENVS, 4, 84, 84).to(device)
truth.batch(next_obs)
next_done = torch.zeros(ENVS, device=device)
truth.batch(next_done)
for update in range(3):
    obs, actions, logprobs, rewards, dones, values = [], [], [], [], [], []
    for step in range(STEPS):
        obs.append(next_obs)
        dones.append(next_done)
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
        values.append(value.flatten())
        actions.append(action)
        logprobs.append(logprob)
        rewards.append(torch.rand(ENVS).to(device))
        next_obs, next_done = torch.rand(ENVS, 4, 84, 84).to(device), torch.zeros(ENVS).to(device)
        truth.batch(next_obs, next_done)
    obs, actions, logprobs = torch.stack(obs), torch.stack(actions), torch.stack(logprobs)
    rewards, dones, values = torch.stack(rewards), torch.stack(dones), torch.stack(values)
    truth.batch(obs, actions, logprobs, rewards, dones, values)
    truth.mark("rollout")
    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards).to(device)
        last = 0
        for t in reversed(range(STEPS)):
            nextnonterminal = 1.0 - (next_done if t == STEPS - 1 else dones[t + 1])
            nextvalues = next_value if t == STEPS - 1 else values[t + 1]
            delta = rewards[t] + 0.99 * nextvalues * nextnonterminal - values[t]
            advantages[t] = last = delta + 0.99 * 0.95 * nextnonterminal * last
        returns = advantages + values
    truth.batch(advantages, returns)
    b_obs = obs.reshape((-1, 4, 84, 84))
    b_logprobs, b_actions = logprobs.reshape(-1), actions.reshape(-1)
    b_adv, b_ret, b_val = advantages.reshape(-1), returns.reshape(-1), values.reshape(-1)
    for epoch in range(3):
        order = torch.randperm(ENVS * STEPS)
        for start in range(0, ENVS * STEPS, 64):
            mb = order[start : start + 64].to(device)
            truth.batch(mb)
            x = b_obs[mb]
            truth.batch(x)
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(x, b_actions[mb])
            ratio = (newlogprob - b_logprobs[mb]).exp()
            adv = b_adv[mb]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_ret[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
