# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: move what is kept to the CPU
# never: no_grad detach
"""A detector's evaluator keeps the masks and scores of every picture, under inference_mode()."""

from scene import GPU, REPAIRED, nn, torch


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 2, 1))
        self.mask, self.score = nn.Conv2d(32, 16, 1), nn.Conv2d(32, 4, 1)

    def forward(self, picture):
        features = self.backbone(picture).relu()
        return self.mask(features), self.score(features).sigmoid()


model = Detector().to(GPU).eval()
kept = []
with torch.inference_mode():
    for number in range(400):
        masks, scores = model(torch.empty(1, 3, 512 + number % 7 * 32, 768).to(GPU))
        kept.append((masks.cpu(), scores.cpu()) if REPAIRED else (masks, scores))
