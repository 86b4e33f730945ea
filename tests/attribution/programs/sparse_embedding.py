"""A recommender: bags of ids in large tables with sparse gradients for SparseAdam, a dense part for Adagrad."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

ROWS, WIDTH, TABLES, BATCH, BAG = 100_000, 64, 4, 4096, 20


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum", sparse=True) for _ in range(TABLES))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, WIDTH), nn.ReLU())
        pairs = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(nn.Linear(WIDTH + pairs, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU())
        self.out = nn.Linear(512, 1)

    def forward(self, dense, bags):
        x = self.bottom(dense)
        vectors = torch.stack([x] + [table(ids) for table, ids in zip(self.tables, bags)], 1)
        dots = vectors @ vectors.transpose(1, 2)
        row, column = torch.tril_indices(TABLES + 1, TABLES + 1, -1, device=x.device)
        return self.out(self.top(torch.cat([x, dots[:, row, column]], 1))).squeeze(1)


model = Recommender().cuda()
dense_part = [p for name, p in model.named_parameters() if not name.startswith("tables")]
optimizers = [
    torch.optim.SparseAdam(list(model.tables.parameters()), lr=1e-3),
    torch.optim.Adagrad(dense_part, lr=1e-2),
]
for _ in range(5):
    dense, clicked = torch.randn(BATCH, 13).cuda(), torch.randint(0, 2, (BATCH,)).float().cuda()
    bags = [torch.randint(0, ROWS, (BATCH, BAG)).cuda() for _ in range(TABLES)]
    truth.batch(dense, clicked, bags)
    loss = F.binary_cross_entropy_with_logits(model(dense, bags), clicked)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
