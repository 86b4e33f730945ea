# env: SIMGPU_MEMORY=1280MiB
# expect: oom leak graph
# advice: torch.no_grad()
# never: autograd.Function
"""Tokens are generated without no_grad: the graph holds each version of the cache of keys and values, and what the
layers made of each token."""

import functools

from scene import F, GPU, REPAIRED, nn, torch

WIDTH, LAYERS, BATCH, PROMPT = 512, 4, 2, 256


def traced(forward):
    """As libraries decorate a module's forward()."""

    @functools.wraps(forward)
    def wrapper(*words, **named):
        return forward(*words, **named)

    return wrapper


def turned(x):
    return x * 0.5 + x.flip(-1) * 0.5


class Cache:
    def __init__(self):
        self.keys, self.values = [None] * LAYERS, [None] * LAYERS

    def update(self, at, key, value):
        if self.keys[at] is not None:
            key = torch.cat([self.keys[at], key], 1)
            value = torch.cat([self.values[at], value], 1)
        self.keys[at], self.values[at] = key, value
        return key, value


class Layer(nn.Module):
    def __init__(self, at):
        super().__init__()
        self.at = at
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    @traced
    def forward(self, x, cache):
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        query, key = turned(query), turned(key)
        key, value = cache.update(self.at, key, value.contiguous())
        x = x + self.out((query @ key.transpose(1, 2)).softmax(-1) @ value)
        return x + self.down(F.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer(at) for at in range(LAYERS))

    def forward(self, x, cache):
        for layer in self.layers:
            x = layer(x, cache)
        return x


model = Model().to(GPU)
with torch.set_grad_enabled(not REPAIRED):
    for _ in range(4):
        cache, x = Cache(), torch.zeros(BATCH, PROMPT, WIDTH, device=GPU)
        for _ in range(100):
            x = model(x, cache)[:, -1:] * 0.5
