"""PPO on a language model: answers are sampled with a cache, scored by a frozen reference and a reward model, then
trained on in several passes."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth
from models import GPT, VOCABULARY, token_ids

ROWS, PROMPT, ANSWER = 16, 64, 32


class WithValue(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.value = nn.Linear(VOCABULARY, 1)

    def forward(self, ids):
        logits = self.body(ids)
        return logits, self.value(logits).squeeze(-1)


def log_probabilities(logits, ids):
    return torch.gather(logits[:, :-1].log_softmax(-1), 2, ids[:, 1:, None]).squeeze(-1)


@torch.no_grad()
def answer(model, ids):
    for _ in range(ANSWER):
        logits, _ = model(ids)
        weights = torch.softmax(logits[:, -1].float(), -1) + 1
        ids = torch.cat([ids, torch.multinomial(weights, 1)], 1)
    return ids


base = GPT(layers=3, width=384).cuda()
reference = copy.deepcopy(base).eval().requires_grad_(False)
reward = GPT(layers=2, width=256).cuda().eval().requires_grad_(False)
model = WithValue(base).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for _ in range(3):
    prompts = token_ids(ROWS, PROMPT).cuda()
    truth.batch(prompts)
    ids = answer(model, prompts)
    with torch.no_grad():
        logits, values = model(ids)
        old = log_probabilities(logits, ids)
        distance = old - log_probabilities(reference(ids), ids)
        scores = reward(ids)[:, -1].mean(-1)
        rewards = -0.05 * distance
        rewards[:, -1] += scores
        advantages = torch.zeros_like(rewards)
        last = torch.zeros(ROWS, device="cuda")
        for t in reversed(range(rewards.shape[1])):
            last = rewards[:, t] + 0.95 * values[:, t + 1] - values[:, t] + 0.95 * last
            advantages[:, t] = last
        returns = advantages + values[:, :-1]
        del logits
    truth.batch(ids, values, old, distance, scores, rewards, advantages, returns, last)
    truth.mark("rollout")
    for _ in range(2):
        for rows in torch.arange(ROWS, device="cuda").split(8):
            truth.batch(rows)
            logits, value = model(ids[rows])
            ratio = (log_probabilities(logits, ids[rows]) - old[rows]).exp()
            gain = torch.minimum(ratio * advantages[rows], ratio.clamp(0.8, 1.2) * advantages[rows])
            loss = -gain.mean() + 0.5 * F.mse_loss(value[:, :-1], returns[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
