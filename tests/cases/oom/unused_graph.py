# env: SIMGPU_MEMORY=8GiB
# expect: finding unused_graph
# advice: torch.no_grad()
"""Validation under autocast, on a larger batch than training, builds graphs: each goes when the next has been made."""

from scene import GPU, REPAIRED, Mlp, batch, nn, step, torch


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = Mlp(1024), nn.Linear(1024, 16)

    def forward(self, x):
        return self.head(self.body(x))


def evaluate(model):
    right = torch.zeros((), device=GPU)
    with torch.set_grad_enabled(not REPAIRED):
        for _ in range(3):
            with torch.autocast("cuda", torch.bfloat16):
                made = model(batch(16384, 1024))
            right += (made.argmax(1) == 0).float().sum()
    return right.item()


model = Classifier().to(GPU)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    for _ in range(4):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(batch(4096, 1024)).square().mean()
        step(optimizer, loss)
    del loss
    evaluate(model)
