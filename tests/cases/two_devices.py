# env: SIMGPU_DEVICES=2
"""A model cut in two, half of it on each device."""

from common import F, done, nn, torch


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1024, 4096).to("cuda:0")
        self.second = nn.Linear(4096, 1024).to("cuda:1")

    def forward(self, x):
        return self.second(F.gelu(self.first(x)).to("cuda:1"))


model = Halves()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.empty(256, 1024, device="cuda:0")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
done(__file__)
