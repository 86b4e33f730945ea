"""A language model with memory: each layer sees its own hidden states of the segment before, which are
kept without gradients and grow to a limit; evaluation with a longer memory."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

VOCAB, WIDTH, HEADS, LENGTH, MEMORY = 5000, 384, 6, 64, 128


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.r = nn.Linear(WIDTH, WIDTH, bias=False)
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        up, down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.ff = nn.Sequential(up, nn.ReLU(inplace=True), nn.Dropout(0.1), down)

    def forward(self, w, pos, mems):
        cat = torch.cat([mems, w], 1) if mems is not None else w
        b, n, _ = w.shape
        q = self.q(w).view(b, n, HEADS, -1)
        k, v = self.kv(cat).view(b, cat.shape[1], 2, HEADS, -1).unbind(2)
        r = self.r(pos).view(-1, HEADS, WIDTH // HEADS)
        score = torch.einsum("bihd,bjhd->bhij", q, k) + torch.einsum("bihd,jhd->bhij", q, r)
        prob = F.dropout(F.softmax(score * 0.125, -1), 0.1, self.training)
        out = self.o(torch.einsum("bhij,bjhd->bihd", prob, v).reshape(b, n, WIDTH))
        w = self.ln1(w + out)
        return self.ln2(w + self.ff(w))


class MemTransformerLM(nn.Module):
    def __init__(self, layers=5):
        super().__init__()
        self.emb, self.out = nn.Embedding(VOCAB, WIDTH), nn.Linear(WIDTH, VOCAB)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.register_buffer("inv_freq", 1 / (10000 ** (torch.arange(0.0, WIDTH, 2.0) / WIDTH)))
        self.mem_len = MEMORY

    def forward(self, data, target, *mems):
        mems = mems or [None] * (len(self.layers) + 1)
        h = self.emb(data)
        mlen = 0 if mems[0] is None else mems[0].shape[1]
        seq = torch.arange(data.shape[1] + mlen - 1, -1, -1.0, device=h.device)
        sinusoid = torch.outer(seq, self.inv_freq)
        pos = torch.cat([sinusoid.sin(), sinusoid.cos()], -1)
        hids = [h]
        for layer, mem in zip(self.layers, mems):
            h = layer(h, pos, mem)
            hids.append(h)
        with torch.no_grad():
            joined = [x if m is None else torch.cat([m, x], 1) for m, x in zip(mems, hids)]
            new = [x[:, -self.mem_len :].detach() for x in joined]
        loss = F.cross_entropy(self.out(h).flatten(0, 1), target.flatten(), reduction="none")
        return [loss.view_as(target)] + new


model = MemTransformerLM().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=2.5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
for epoch in range(2):
    model.train()
    mems = tuple()
    for step in range(5):
        data, target = torch.randint(0, VOCAB, (16, LENGTH)).cuda(), torch.randint(0, VOCAB, (16, LENGTH)).cuda()
        truth.batch(data, target)
        model.zero_grad()
        ret = model(data, target, *mems)
        loss, mems = ret[0], ret[1:]
        loss = loss.float().mean().type_as(loss)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        scheduler.step()
    model.eval()
    model.mem_len = 2 * MEMORY
    with torch.no_grad():
        mems = tuple()
        for _ in range(4):
            data, target = torch.randint(0, VOCAB, (8, LENGTH)).cuda(), torch.randint(0, VOCAB, (8, LENGTH)).cuda()
            truth.batch(data, target)
            ret = model(data, target, *mems)
            loss, mems = ret[0], ret[1:]
            truth.label("other", mems)
            loss.mean().item()
            truth.mark("eval")
    model.mem_len = MEMORY
