"""Deep embedded clustering: an autoencoder is pretrained, then the whole data set on the GPU is encoded
without gradients each epoch, a target distribution is computed from it and used by index; the centres are a
parameter."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

ROWS, K = 8192, 10
data = torch.rand(ROWS, 784).cuda()
truth.batch(data)


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 10)
        )
        self.decoder = nn.Sequential(
            nn.Linear(10, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 784)
        )

    def forward(self, x):
        z = self.encoder(x)
        return self.decoder(z), z


class DEC(nn.Module):
    def __init__(self, ae):
        super().__init__()
        self.ae, self.centers = ae, nn.Parameter(torch.empty(K, 10))
        nn.init.xavier_normal_(self.centers)

    def forward(self, x):
        out, z = self.ae(x)
        q = 1.0 / (1.0 + torch.sum((z.unsqueeze(1) - self.centers) ** 2, 2))
        return out, q / q.sum(1, keepdim=True)


def target_distribution(q):
    w = q**2 / q.sum(0)
    return (w.t() / w.sum(1)).t()


ae = AE().cuda()
opt = torch.optim.Adam(ae.parameters(), 1e-3)
for epoch in range(2):
    for i in torch.randperm(ROWS).split(1024):
        x = data[i.cuda()]
        truth.batch(x)
        out, _ = ae(x)
        loss = F.mse_loss(out, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
model = DEC(ae).cuda()
with torch.no_grad():
    z = ae.encoder(data)
    truth.label("other", z)
    model.centers.data.copy_(z[torch.randperm(ROWS)[:K].cuda()])
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(3):
    with torch.no_grad():
        _, q = model(data)
        p = target_distribution(q)
        truth.label("other", q, p)
    truth.mark("target")
    for i in range(0, ROWS, 1024):
        x = data[i : i + 1024]
        out, q_batch = model(x)
        loss = F.mse_loss(out, x) + 0.1 * F.kl_div(q_batch.log(), p[i : i + 1024], reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
