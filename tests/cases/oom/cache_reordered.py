# env: SIMGPU_MEMORY=700MiB
# expect: oom leak cache
# advice: a limit of its length
# never: no_grad
"""Beam search without an end: inside each block the cache gets a token longer, and then its beams are put in order."""

from scene import GPU, REPAIRED, F, nn, torch


class Cache:
    def __init__(self):
        self.kept = {}

    def update(self, layer, new):
        if layer in self.kept:
            new = torch.cat([self.kept[layer][:, -64:] if REPAIRED else self.kept[layer], new], 1)
        self.kept[layer] = new
        return new

    def reorder(self, order):
        for layer in self.kept:
            self.kept[layer] = self.kept[layer].index_select(0, order)


class Block(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number, self.kv, self.out = number, nn.Linear(512, 1024), nn.Linear(512, 512)

    def forward(self, x, cache):
        k, v = cache.update(self.number, self.kv(x)).chunk(2, -1)
        return x + self.out(F.scaled_dot_product_attention(x, k, v))


@torch.no_grad()
def generate(blocks, beams, most):
    cache = Cache()
    order = torch.zeros(beams, dtype=torch.long, device=GPU)
    for _ in range(most):
        x = torch.empty(beams, 1, 512, device=GPU)
        for block in blocks:
            x = block(x, cache)
        cache.reorder(order)


generate([Block(number).to(GPU).eval() for number in range(4)], 64, 500)
