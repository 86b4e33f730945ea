"""A detector with three output scales: targets are built on the GPU for each, parameter groups, an
averaged model, accumulation to a nominal batch, warm-up; validation of the average collects outputs."""

import math
from copy import deepcopy

import torch
import torch.nn as nn

import truth


def autopad(k):
    return k // 2


class Conv(nn.Module):
    def __init__(self, c1, c2, k=1, s=1):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, autopad(k), bias=False)
        self.bn, self.act = nn.BatchNorm2d(c2), nn.SiLU(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class C3(nn.Module):
    def __init__(self, c1, c2):
        super().__init__()
        c = c2 // 2
        self.cv1, self.cv2, self.cv3 = Conv(c1, c), Conv(c1, c), Conv(2 * c, c2)
        self.m = nn.Sequential(Conv(c, c, 1), Conv(c, c, 3))

    def forward(self, x):
        y = self.cv1(x)
        return self.cv3(torch.cat((y + self.m(y), self.cv2(x)), 1))


class Detect(nn.Module):
    def __init__(self, nc, ch):
        super().__init__()
        self.nc, self.no, self.na = nc, nc + 5, 3
        self.m = nn.ModuleList(nn.Conv2d(c, self.no * self.na, 1) for c in ch)
        self.grid = [torch.empty(0) for _ in ch]

    def forward(self, x):
        z = []
        for i in range(3):
            x[i] = self.m[i](x[i])
            bs, _, ny, nx = x[i].shape
            x[i] = x[i].view(bs, self.na, self.no, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
            if not self.training:
                if self.grid[i].shape[2:4] != x[i].shape[2:4]:
                    y, w = torch.arange(ny, device=x[i].device), torch.arange(nx, device=x[i].device)
                    yv, xv = torch.meshgrid(y, w, indexing="ij")
                    self.grid[i] = torch.stack((xv, yv), 2).expand(1, self.na, ny, nx, 2).float()
                    truth.label("other", self.grid[i])
                xy, wh, conf = x[i].sigmoid().split((2, 2, self.nc + 1), 4)
                xy = (xy * 2 + self.grid[i]) * 8 * 2**i
                z.append(torch.cat((xy, (wh * 2) ** 2, conf), 4).view(bs, -1, self.no))
        return x if self.training else (torch.cat(z, 1), x)


class Model(nn.Module):
    def __init__(self, nc=80):
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 32, 6, 2), Conv(32, 64, 3, 2), C3(64, 64))
        self.p3 = nn.Sequential(Conv(64, 128, 3, 2), C3(128, 128))
        self.p4 = nn.Sequential(Conv(128, 256, 3, 2), C3(256, 256))
        self.p5 = nn.Sequential(Conv(256, 512, 3, 2), C3(512, 512))
        self.detect = Detect(nc, (128, 256, 512))

    def forward(self, x):
        a = self.p3(self.stem(x))
        b = self.p4(a)
        return self.detect([a, b, self.p5(b)])


class ComputeLoss:
    def __init__(self, model):
        self.device = next(model.parameters()).device
        self.bce = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0], device=self.device))
        self.bce_obj = nn.BCEWithLogitsLoss()

    def __call__(self, p, targets):
        lcls, lbox, lobj = (torch.zeros(1, device=self.device) for _ in range(3))
        for i, pi in enumerate(p):
            b, cls, gxy, gwh, gi, gj = self.build_target(pi, targets)
            tobj = torch.zeros(pi.shape[:4], dtype=pi.dtype, device=self.device)
            pxy, pwh, _, pcls = pi[b, 0, gj, gi].split((2, 2, 1, 80), 1)
            lbox += ((pxy.sigmoid() - gxy) ** 2 + (pwh.sigmoid() - gwh) ** 2).mean()
            tobj[b, 0, gj, gi] = 1.0
            t = torch.full_like(pcls, 0.0)
            t[range(len(b)), cls] = 1.0
            lcls += self.bce(pcls, t)
            lobj += self.bce_obj(pi[..., 4], tobj)
        return (lbox + lobj + lcls) * targets.shape[0], torch.cat((lbox, lobj, lcls)).detach()

    def build_target(self, pi, targets):
        size = torch.tensor(pi.shape, device=self.device)[[3, 2]]
        b, cls = targets[:, 0].long(), targets[:, 1].long()
        gxy, gwh = targets[:, 2:4] * size, targets[:, 4:6] * size
        gij = gxy.long()
        return b, cls, gxy - gij, gwh, gij[:, 0].clamp_(0, pi.shape[3] - 1), gij[:, 1].clamp_(0, pi.shape[2] - 1)


class ModelEMA:
    def __init__(self, model, decay=0.9999, tau=2000):
        self.ema, self.updates = deepcopy(model).eval(), 0
        self.decay = lambda x: decay * (1 - math.exp(-x / tau))
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        self.updates += 1
        d, msd = self.decay(self.updates), model.state_dict()
        for k, v in self.ema.state_dict().items():
            if v.dtype.is_floating_point:
                v *= d
                v += (1 - d) * msd[k].detach()


device = torch.device("cuda:0")
model = Model().to(device)
g = [], [], []
for v in model.modules():
    for name, p in v.named_parameters(recurse=False):
        (g[2] if name == "bias" else g[1] if isinstance(v, nn.BatchNorm2d) else g[0]).append(p)
optimizer = torch.optim.SGD(g[2], lr=0.01, momentum=0.937, nesterov=True)
optimizer.add_param_group({"params": g[0], "weight_decay": 5e-4})
optimizer.add_param_group({"params": g[1], "weight_decay": 0.0})
ema, compute_loss = ModelEMA(model), ComputeLoss(model)
scaler = torch.amp.GradScaler("cuda")
last_opt_step, accumulate, ni = -1, 2, 0
for epoch in range(2):
    model.train()
    mloss = torch.zeros(3, device=device)
    optimizer.zero_grad()
    for i in range(6):
        imgs = (torch.rand(16, 3, 128, 128) * 255).byte()
        imgs = imgs.to(device, non_blocking=True).float() / 255
        targets = torch.rand(64, 6).to(device)
        truth.batch(imgs, targets)
        with torch.autocast("cuda", torch.float16):
            pred = model(imgs)
            loss, loss_items = compute_loss(pred, targets)
        scaler.scale(loss).backward()
        if ni - last_opt_step >= accumulate:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            ema.update(model)
            last_opt_step = ni
        mloss = (mloss * i + loss_items) / (i + 1)
        ni += 1
    half = deepcopy(ema.ema).half().eval()
    stats = []
    with torch.no_grad():
        for _ in range(3):
            im = torch.rand(32, 3, 128, 128).to(device).half()
            truth.batch(im)
            preds, train_out = half(im)
            stats.append(preds.float())
            truth.label("other", train_out)
            truth.label("other", stats)
            truth.mark("val")
