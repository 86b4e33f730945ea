"""Generation with a cache of keys and values, two requests; nothing is trained."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

torch.backends.cuda.enable_cudnn_sdp(False)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, cache):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        truth.label("other", k, v)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + self.out(mixed.reshape(batch, length, width))
        return x + self.down(F.relu(self.up(x))), (k, v)


class Model(nn.Module):
    def __init__(self, vocabulary=8192, width=512, layers=6):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, 8) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids, caches):
        x, kept = self.tokens(ids), []
        for layer, cache in zip(self.layers, caches):
            x, cache = layer(x, cache)
            kept.append(cache)
        return self.head(x), kept


model = Model().half().cuda().eval()
with torch.inference_mode():
    for _ in range(2):
        ids = torch.randint(0, 8192, (16, 256)).cuda()
        truth.batch(ids)
        caches = [None] * 6
        for _ in range(24):
            logits, caches = model(ids, caches)
            ids = logits[:, -1:].argmax(-1)
            truth.label("other", logits)
            truth.mark("token")
