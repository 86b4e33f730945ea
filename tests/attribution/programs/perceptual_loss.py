"""A network that styles pictures, trained on what a frozen one makes of them at three depths: features of the style and
their Gram matrices are kept for the whole run, those of each picture until the next."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


def convolutions(*widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    return layers


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        pool = nn.MaxPool2d(2)
        parts = convolutions(3, 32, 32), [pool, *convolutions(32, 64, 64)], [pool, *convolutions(64, 128, 128)]
        self.parts = nn.ModuleList(nn.Sequential(*part) for part in (*parts, [pool, *convolutions(128, 256, 256)]))
        self.requires_grad_(False)

    def forward(self, x):
        found = []
        for part in self.parts:
            x = part(x)
            found.append(x)
        return found


def gram_matrix(features):
    batch, channels, height, width = features.shape
    flat = features.view(batch, channels, height * width)
    return flat.bmm(flat.transpose(1, 2)) / (channels * height * width)


def train():
    styled = nn.Sequential(*convolutions(3, 32, 32), nn.Conv2d(32, 3, 3, padding=1)).cuda()
    features, mse = Features().cuda(), nn.MSELoss()
    optimizer = torch.optim.Adam(styled.parameters(), 1e-3)
    style = torch.rand(1, 3, 96, 96).repeat(8, 1, 1, 1).cuda()
    truth.batch(style)
    features_style = features(style)
    gram_style = [gram_matrix(f) for f in features_style]
    truth.label("other", features_style, gram_style)
    for _ in range(6):
        x = torch.rand(8, 3, 96, 96).cuda()
        truth.batch(x)
        y = styled(x)
        features_y = features(y)
        features_x = features(x)
        loss = 1e5 * mse(features_y[1], features_x[1])
        for found, wanted in zip(features_y, gram_style):
            gram = gram_matrix(found)
            loss = loss + 1e10 * F.mse_loss(gram, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
