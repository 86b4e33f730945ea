"""Beam search with a cache held by the modules, reordered after each token, after a prompt read
in pieces; scores of all tokens are kept. Nothing trains."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

WORDS, WIDTH, LAYERS, HEADS, BEAMS, REQUESTS, LONGEST = 8192, 512, 4, 8, 4, 4, 320


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def make_cache(self, rows, like):
        shape = (rows, HEADS, LONGEST, WIDTH // HEADS)
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)
        truth.label("other", self.keys, self.values)

    def reorder(self, order):
        self.keys, self.values = self.keys.index_select(0, order), self.values.index_select(0, order)
        truth.label("other", self.keys, self.values)

    def forward(self, x, begin):
        rows, length, _ = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        end = begin + length
        self.keys[:, :, begin:end], self.values[:, :, begin:end] = k, v
        mixed = F.scaled_dot_product_attention(q, self.keys[:, :, :end], self.values[:, :, :end])
        return self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, begin):
        x = x + self.attention(self.norm1(x), begin)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids, begin):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x, begin)
        return self.head(x[:, -1])


@torch.inference_mode()
def search(model, prompt, count):
    rows = REQUESTS * BEAMS
    for layer in model.layers:
        layer.attention.make_cache(rows, model.head.weight)
    ids = prompt.repeat_interleave(BEAMS, 0)
    truth.label("other", ids)
    for begin in range(0, ids.shape[1], 64):
        logits = model(ids[:, begin : begin + 64], begin)
        truth.label("other", logits)
    scores = torch.zeros(REQUESTS, BEAMS, device="cuda")
    truth.label("other", scores)
    kept = []
    for place in range(count):
        probabilities = F.log_softmax(logits.float(), -1)
        kept.append(probabilities)
        total = (scores.view(-1, 1) + probabilities).view(REQUESTS, -1)
        scores, best = total.topk(BEAMS, 1)
        origin = torch.arange(REQUESTS, device="cuda")[:, None] * BEAMS + best // WORDS
        for layer in model.layers:
            layer.attention.reorder(origin.flatten())
        ids = torch.cat([ids[origin.flatten()], (best % WORDS).view(-1, 1)], 1)
        logits = model(ids[:, -1:], prompt.shape[1] + place)
        truth.label("other", probabilities, total, scores, best, ids, logits)
        if place % 3 == 0:
            truth.mark("token")
    return ids, kept


model = Model().cuda().half().eval()
answers = []
for _ in range(2):
    prompt = torch.randint(0, WORDS, (REQUESTS, 256)).cuda()
    truth.batch(prompt)
    answers.append(search(model, prompt, 10))
