"""Dense retrieval: a corpus is embedded into an fp16 matrix on the GPU, each query's hardest passages are
looked up in it and read again with gradients, and the index is made anew after each epoch."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

PASSAGES, LENGTH, DIM = 16384, 64, 256
device = "cuda"


class Tower(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.word = nn.Embedding(30522, DIM)
        self.place = nn.Embedding(LENGTH, DIM)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(DIM, 4, 1024, batch_first=True, norm_first=True) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(DIM)

    def forward(self, ids, attention_mask):
        x = self.word(ids) + self.place.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~attention_mask)
        x = self.norm(x) * attention_mask.unsqueeze(-1)
        return F.normalize(x.sum(1) / attention_mask.sum(1, keepdim=True), dim=-1)


class Index:
    def __init__(self, size, dim):
        self.vectors = torch.empty(size, dim, dtype=torch.float16, device=device)
        truth.label("other", self.vectors)

    def build(self, encoder, corpus, batch=1024):
        encoder.eval()
        with torch.inference_mode():
            for i in range(0, len(corpus), batch):
                ids = corpus[i : i + batch].to(device)
                truth.batch(ids)
                mask = ids.ne(0)
                truth.batch(mask)
                self.vectors[i : i + batch] = encoder(ids, mask).half()
        encoder.train()

    def search(self, q, k):
        best, places = None, None
        for start in range(0, len(self.vectors), 4096):
            scores = q.half() @ self.vectors[start : start + 4096].t()
            s, p = scores.topk(k, dim=1)
            if best is None:
                best, places = s, p + start
            else:
                best, order = torch.cat([best, s], 1).topk(k, dim=1)
                places = torch.cat([places, p + start], 1).gather(1, order)
        return best, places


def get_batch(corpus, n=32):
    rows = torch.randint(0, len(corpus), (n,))
    return corpus[rows][:, :24].contiguous(), rows


if __name__ == "__main__":
    corpus = torch.randint(1, 30522, (PASSAGES, LENGTH))
    queries, passages = Tower().to(device), Tower().to(device)
    optim = torch.optim.AdamW([*queries.parameters(), *passages.parameters()], lr=2e-5)
    index = Index(PASSAGES, DIM)
    for epoch in range(2):
        index.build(passages, corpus)
        truth.mark("indexed")
        for it in range(4):
            q_ids, positive = get_batch(corpus)
            q_ids = q_ids.to(device)
            truth.batch(q_ids)
            q = queries(q_ids, torch.ones_like(q_ids, dtype=torch.bool))
            with torch.no_grad():
                _, hard = index.search(q, 4)
            hard = hard.cpu().remainder(PASSAGES)
            ids = corpus[torch.cat([positive[:, None], hard], 1).flatten()].to(device)
            truth.batch(ids)
            p = passages(ids, ids != 0)
            logits = q @ p.T / 0.05
            labels = torch.arange(len(q), device=device) * 5
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            optim.step()
            optim.zero_grad(set_to_none=True)
