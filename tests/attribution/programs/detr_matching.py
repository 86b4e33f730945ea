"""A set detector: a convolutional backbone, an encoder and a decoder with learned queries, losses after
every decoder layer, and the matching of queries to objects made on the CPU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

CLASSES, QUERIES = 91, 100


class FrozenBatchNorm2d(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("weight", torch.ones(n))
        self.register_buffer("bias", torch.zeros(n))

    def forward(self, x):
        return x * self.weight.reshape(1, -1, 1, 1) + self.bias.reshape(1, -1, 1, 1)


def backbone():
    layers, width = [], 3
    for wider in (32, 64, 128, 256):
        layers += [nn.Conv2d(width, wider, 3, 2, 1, bias=False), FrozenBatchNorm2d(wider), nn.ReLU(inplace=True)]
        width = wider
    return nn.Sequential(*layers)


class MLP(nn.Module):
    def __init__(self, d, out):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, out)])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(x)) if i < 2 else layer(x)
        return x


class DETR(nn.Module):
    def __init__(self, d=256, layers=3):
        super().__init__()
        self.backbone = backbone()
        self.input_proj = nn.Conv2d(256, d, 1)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 8, 1024, batch_first=True), layers)
        layer = lambda: nn.TransformerDecoderLayer(d, 8, 1024, batch_first=True)  # noqa: E731
        self.decoder = nn.ModuleList(layer() for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.query_embed = nn.Embedding(QUERIES, d)
        self.class_embed, self.bbox_embed = nn.Linear(d, CLASSES + 1), MLP(d, 4)
        self.row, self.col = nn.Parameter(torch.rand(50, d // 2)), nn.Parameter(torch.rand(50, d // 2))

    def forward(self, images, mask):
        h = self.input_proj(self.backbone(images))
        b, c, height, width = h.shape
        pos = torch.cat(
            [
                self.col[:width].unsqueeze(0).repeat(height, 1, 1),
                self.row[:height].unsqueeze(1).repeat(1, width, 1),
            ],
            dim=-1,
        ).flatten(0, 1)
        small = F.interpolate(mask[None].float(), size=(height, width))[0].to(torch.bool).flatten(1)
        memory = self.encoder(pos + h.flatten(2).permute(0, 2, 1), src_key_padding_mask=small)
        x = self.query_embed.weight.unsqueeze(0).repeat(b, 1, 1)
        hidden = []
        for layer in self.decoder:
            x = layer(x, memory, memory_key_padding_mask=small)
            hidden.append(self.norm(x))
        hs = torch.stack(hidden)
        logits, boxes = self.class_embed(hs), self.bbox_embed(hs).sigmoid()
        out = {"pred_logits": logits[-1], "pred_boxes": boxes[-1]}
        out["aux_outputs"] = [{"pred_logits": a, "pred_boxes": b} for a, b in zip(logits[:-1], boxes[:-1])]
        return out


@torch.no_grad()
def matcher(outputs, targets):
    prob = outputs["pred_logits"].flatten(0, 1).softmax(-1)
    ids = torch.cat([t["labels"] for t in targets])
    boxes = torch.cat([t["boxes"] for t in targets])
    cost = 5 * torch.cdist(outputs["pred_boxes"].flatten(0, 1), boxes, p=1) - prob[:, ids]
    cost = cost.view(len(targets), QUERIES, -1).cpu()
    pairs = []
    for c in cost.split([len(t["boxes"]) for t in targets], -1):
        n = c.shape[-1]
        pairs.append((torch.randperm(QUERIES)[:n], torch.arange(n)))
    return pairs


def criterion(outputs, targets):
    losses = {}
    for k, o in enumerate([outputs, *outputs["aux_outputs"]]):
        indices = matcher(o, targets)
        rows = torch.cat([torch.full_like(s, i) for i, (s, _) in enumerate(indices)])
        cols = torch.cat([s for s, _ in indices])
        wanted = torch.full(o["pred_logits"].shape[:2], CLASSES, dtype=torch.int64, device="cuda")
        wanted[rows, cols] = torch.cat([t["labels"] for t in targets])
        losses[f"ce_{k}"] = F.cross_entropy(o["pred_logits"].transpose(1, 2), wanted)
        true = torch.cat([t["boxes"] for t in targets])
        losses[f"l1_{k}"] = 5 * F.l1_loss(o["pred_boxes"][rows, cols], true, reduction="sum") / len(true)
    return losses


def loader(n):
    for _ in range(n):
        sizes = [(192 + 32 * int(i), 256) for i in torch.randint(0, 3, (4,))]
        tall = max(h for h, _ in sizes)
        images, mask = torch.zeros(4, 3, tall, 256), torch.ones(4, tall, 256, dtype=torch.bool)
        for i, (h, w) in enumerate(sizes):
            images[i, :, :h, :w] = torch.rand(3, h, w)
            mask[i, :h, :w] = False
        yield (images, mask), [
            {"labels": torch.randint(0, CLASSES, (5,)), "boxes": torch.rand(5, 4), "size": torch.tensor(s)}
            for s in sizes
        ]


def main():
    torch.backends.mha.set_fastpath_enabled(False)
    device = torch.device("cuda")
    model = DETR().to(device)
    dicts = [
        {"params": [p for n, p in model.named_parameters() if "backbone" not in n]},
        {"params": [p for n, p in model.named_parameters() if "backbone" in n], "lr": 1e-5},
    ]
    optimizer = torch.optim.AdamW(dicts, lr=1e-4, weight_decay=1e-4)
    for epoch in range(2):
        model.train()
        for (images, mask), targets in loader(3):
            images, mask = images.to(device), mask.to(device)
            targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
            truth.batch(images, mask, targets)
            losses = criterion(model(images, mask), targets)
            total = sum(losses.values())
            reduced = {k: v.item() for k, v in losses.items()}
            optimizer.zero_grad()
            total.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for (images, mask), targets in loader(2):
                images, mask = images.to(device), mask.to(device)
                truth.batch(images, mask)
                outputs = model(images, mask)
                scores, labels = outputs["pred_logits"].softmax(-1)[..., :-1].max(-1)
                found = zip(scores, labels, outputs["pred_boxes"])
                results = [{"scores": s, "labels": n, "boxes": b} for s, n, b in found]
        truth.mark("evaluated")

torch.manual_seed(0)

main()
