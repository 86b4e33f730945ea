"""Pictures and captions brought together: two towers, a learned temperature, bf16 autocast, and zero-shot classes
scored with text features that are made once and kept."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class Transformer(nn.Module):
    def __init__(self, width, layers, heads):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x, mask=None):
        return self.layers(x, mask=mask)


class VisionTower(nn.Module):
    def __init__(self, width=384, patch=16, image=128, out=256):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, patch, patch, bias=False)
        scale = width**-0.5
        self.class_embedding = nn.Parameter(scale * torch.randn(width))
        self.positional_embedding = nn.Parameter(scale * torch.randn((image // patch) ** 2 + 1, width))
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.transformer = Transformer(width, 4, 6)
        self.proj = nn.Parameter(scale * torch.randn(width, out))

    def forward(self, x):
        x = self.conv1(x).flatten(2).permute(0, 2, 1)
        cls = self.class_embedding + torch.zeros(x.shape[0], 1, x.shape[-1], dtype=x.dtype, device=x.device)
        x = torch.cat([cls.to(x.dtype), x], dim=1) + self.positional_embedding.to(x.dtype)
        return self.ln_post(self.transformer(self.ln_pre(x))[:, 0]) @ self.proj


class TextTower(nn.Module):
    def __init__(self, vocab=20000, context=64, width=256, out=256):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab, width)
        self.positional_embedding = nn.Parameter(0.01 * torch.randn(context, width))
        self.transformer = Transformer(width, 4, 4)
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(width**-0.5 * torch.randn(width, out))
        mask = torch.empty(context, context).fill_(float("-inf")).triu_(1)
        self.register_buffer("attn_mask", mask, persistent=False)

    def forward(self, text):
        x = self.token_embedding(text) + self.positional_embedding
        x = self.ln_final(self.transformer(x, self.attn_mask))
        return x[torch.arange(x.shape[0], device=x.device), text.argmax(dim=-1) * 0] @ self.text_projection


class CLIP(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual, self.text = VisionTower(), TextTower()
        self.logit_scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))

    def encode_image(self, image):
        return F.normalize(self.visual(image), dim=-1)

    def encode_text(self, text):
        return F.normalize(self.text(text), dim=-1)

    def forward(self, image, text):
        return self.encode_image(image), self.encode_text(text), self.logit_scale.exp()


class ClipLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.labels = {}

    def ground_truth(self, device, count):
        if count not in self.labels:
            self.labels[count] = torch.arange(count, device=device, dtype=torch.long)
        return self.labels[count]

    def forward(self, image, text, scale):
        logits = scale * image @ text.T
        labels = self.ground_truth(image.device, len(image))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def zero_shot(model, classes=200):
    model.eval()
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        weights = []
        for _ in range(0, classes, 50):
            texts = torch.randint(0, 20000, (50 * 4, 64)).cuda()
            truth.batch(texts)
            features = model.encode_text(texts).reshape(50, 4, -1).mean(1)
            weights.append(F.normalize(features, dim=-1))
        classifier = torch.cat(weights).T
        right = 0
        for _ in range(2):
            images, target = torch.rand(64, 3, 128, 128).cuda(), torch.randint(0, classes, (64,)).cuda()
            truth.batch(images, target)
            logits = 100.0 * model.encode_image(images) @ classifier
            right += (logits.argmax(-1) == target).sum().item()
    truth.mark("zero_shot")
    return right


def train_one_epoch(model, loss_fn, optimizer, steps):
    model.train()
    for _ in range(steps):
        images, texts = torch.rand(96, 3, 128, 128), torch.randint(0, 20000, (96, 64))
        images = images.to("cuda", non_blocking=True)
        texts = texts.to("cuda", non_blocking=True)
        truth.batch(images, texts)
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_fn(*model(images, texts))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type=2.0)
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, np.log(100))
        print(loss.item(), model.logit_scale.exp().item())


def main():
    torch.backends.mha.set_fastpath_enabled(False)
    torch.manual_seed(0)
    model = CLIP().cuda()
    exclude = lambda n, p: p.ndim < 2 or "ln" in n or "bias" in n or "logit_scale" in n  # noqa: E731
    gain = [p for n, p in model.named_parameters() if exclude(n, p)]
    rest = [p for n, p in model.named_parameters() if not exclude(n, p)]
    optimizer = torch.optim.AdamW(
        [{"params": gain, "weight_decay": 0.0}, {"params": rest, "weight_decay": 0.2}], lr=5e-4, betas=(0.9, 0.98)
    )
    for _ in range(2):
        train_one_epoch(model, ClipLoss(), optimizer, 3)
        zero_shot(model)


if __name__ == "__main__":
    main()
