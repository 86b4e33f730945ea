"""A server of a language model: one cache for all requests, made before the first, which come and go;
their prompts are read first, then all make one token at a time. Nothing is trained."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

LAYERS, HEADS, WIDTH, PLACES, LONGEST, WORDS = 6, 8, 512, 16, 512, 8192


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 8 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x, keys, values, begin):
        rows, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        keys[:, :, begin : begin + length] = k
        values[:, :, begin : begin + length] = v
        end = begin + length
        mixed = F.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end])
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        gate, up = self.gate(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids, cache, places, begin):
        x = self.tokens(ids)
        for layer, (keys, values) in zip(self.layers, cache):
            x = layer(x, keys[places], values[places], begin)
        return self.head(x[:, -1])


class Server:
    def __init__(self):
        self.model = Model().cuda().half().eval()
        shape = (PLACES, HEADS, LONGEST, WIDTH // HEADS)
        self.cache = [
            (torch.zeros(shape, dtype=torch.half, device="cuda"), torch.zeros(shape, dtype=torch.half, device="cuda"))
            for _ in range(LAYERS)
        ]
        truth.label("other", *[tensor for pair in self.cache for tensor in pair])

    @torch.inference_mode()
    def read_prompt(self, place, ids):
        return self.model(ids[None], self.cache, slice(place, place + 1), 0).argmax(-1)

    @torch.inference_mode()
    def next_tokens(self, ids, begin):
        logits = self.model(ids[:, None], self.cache, slice(0, PLACES), begin)
        return torch.multinomial(torch.softmax(logits.float() / 0.8, -1) + 1, 1).flatten()


server = Server()
for batch in range(2):
    firsts = []
    for place in range(PLACES):
        prompt = torch.randint(0, WORDS, (200 + 8 * place,)).cuda()
        truth.batch(prompt)
        firsts.append(server.read_prompt(place, prompt))
    truth.label("other", *firsts)
    ids = torch.cat(firsts)
    truth.label("other", ids)
    answers = []
    for token in range(16):
        ids = server.next_tokens(ids, 400 + token)
        truth.label("other", ids)
        answers.append(ids)
        if token % 4 == 0:
            truth.mark("token")
