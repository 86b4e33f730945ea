"""A server of a language model with continuous batching: keys and values in pages of one pool per layer, a
table of pages per request, prompts read one by one, all running requests decoded together, ended ones
replaced."""

from collections import deque
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

import truth

PAGE, PAGES, LAYERS, HEADS, D, V, SLOTS = 16, 256, 4, 8, 512, 16384, 8
dtype, device = torch.float16, "cuda"


def load_weights():
    w = lambda *shape: torch.empty(*shape, dtype=dtype).normal_(0, 0.02).to(device)  # noqa: E731
    shapes = {"qkv": (3 * D, D), "o": (D, D), "up": (4 * D, D), "down": (D, 4 * D), "n1": (D,), "n2": (D,)}
    layers = [{name: w(*shape) for name, shape in shapes.items()} for _ in range(LAYERS)]
    return {"embed": w(V, D), "layers": layers, "norm": w(D)}


@dataclass
class Request:
    prompt: list
    limit: int
    out: list = field(default_factory=list)
    pages: list = field(default_factory=list)

    def __len__(self):
        return len(self.prompt) + len(self.out)


class Engine:
    def __init__(self):
        self.w = load_weights()
        truth.label("parameters", self.w)
        self.k_pool = [torch.zeros(PAGES, PAGE, HEADS, D // HEADS, dtype=dtype, device=device) for _ in range(LAYERS)]
        self.v_pool = [torch.zeros_like(k) for k in self.k_pool]
        truth.label("other", self.k_pool, self.v_pool)
        self.tables = torch.zeros(SLOTS, 32, dtype=torch.long, device=device)
        self.lengths = torch.zeros(SLOTS, dtype=torch.long, device=device)
        self.tokens = torch.zeros(SLOTS, dtype=torch.long, device=device)
        truth.batch(self.tables, self.lengths, self.tokens)
        self.free, self.running, self.waiting = deque(range(PAGES)), [], deque()

    def norm(self, x, w):
        return F.rms_norm(x, (D,), w)

    def block(self, x, i, attend):
        w = self.w["layers"][i]
        q, k, v = F.linear(self.norm(x, w["n1"]), w["qkv"]).view(*x.shape[:-1], 3, HEADS, -1).unbind(-3)
        x = x + F.linear(attend(i, q, k, v).reshape(x.shape), w["o"])
        return x + F.linear(F.silu(F.linear(self.norm(x, w["n2"]), w["up"])), w["down"])

    def grow(self, request):
        while len(request.pages) * PAGE < len(request) + 1:
            request.pages.append(self.free.popleft())

    def prefill(self, request):
        self.grow(request)
        ids = torch.tensor(request.prompt, device=device)
        pages = torch.tensor(request.pages, device=device)
        truth.batch(ids, pages)
        slots = torch.arange(len(ids), device=device)

        def attend(i, q, k, v):
            self.k_pool[i][pages[slots // PAGE], slots % PAGE] = k
            self.v_pool[i][pages[slots // PAGE], slots % PAGE] = v
            q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1)

        x = self.w["embed"][ids]
        for i in range(LAYERS):
            x = self.block(x, i, attend)
        return self.sample(F.linear(self.norm(x[-1:], self.w["norm"]), self.w["embed"]))[0].item()

    def decode(self):
        n = len(self.running)
        for slot, r in enumerate(self.running):
            self.grow(r)
            self.tables[slot, : len(r.pages)].copy_(torch.tensor(r.pages))
        self.lengths[:n].copy_(torch.tensor([len(r) for r in self.running]))
        self.tokens[:n].copy_(torch.tensor([r.out[-1] for r in self.running]))
        width = max(len(r.pages) for r in self.running)
        tables, at = self.tables[:n, :width], self.lengths[:n] - 1
        mask = torch.arange(width * PAGE, device=device)[None] <= at[:, None]

        def attend(i, q, k, v):
            page = tables.gather(1, (at // PAGE)[:, None])[:, 0]
            self.k_pool[i][page, at % PAGE] = k
            self.v_pool[i][page, at % PAGE] = v
            keys = self.k_pool[i][tables].flatten(1, 2).transpose(1, 2)
            values = self.v_pool[i][tables].flatten(1, 2).transpose(1, 2)
            return F.scaled_dot_product_attention(q[:, :, None], keys, values, attn_mask=mask[:, None, None])

        x = self.w["embed"][self.tokens[:n]]
        for i in range(LAYERS):
            x = self.block(x, i, attend)
        return self.sample(F.linear(self.norm(x, self.w["norm"]), self.w["embed"])).tolist()

    def sample(self, logits, top_p=0.9, temperature=0.8):
        probs = torch.softmax(logits.float() / temperature, -1)
        p, order = probs.sort(descending=True)
        p[p.cumsum(-1) - p > top_p] = 0.0
        choice = (p / torch.empty_like(p).exponential_()).argmax(-1, keepdim=True)
        return order.gather(1, choice)[:, 0] % V

    def step(self):
        while self.waiting and len(self.running) < SLOTS:
            request = self.waiting.popleft()
            request.out.append(self.prefill(request))
            self.running.append(request)
        for request, token in zip(self.running, self.decode()):
            request.out.append(token)
        for request in [r for r in self.running if len(r.out) >= r.limit]:
            self.free.extend(request.pages)
            self.running.remove(request)
            yield request


torch.manual_seed(0)
engine = Engine()
for n in torch.randint(20, 250, (14,)).tolist():
    engine.waiting.append(Request(list(range(n)), int(n) % 17 + 4))
served = 0
with torch.inference_mode():
    while engine.waiting or engine.running:
        served += sum(1 for _ in engine.step())
        truth.mark("stepped")
print(served)
