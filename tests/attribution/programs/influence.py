"""Data attribution: the gradient of each sample is taken with autograd.grad, flattened, projected by a
random matrix and put into a row of a matrix on the GPU; the kernel of these is then solved by conjugate
gradients."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
X, Y = torch.randn(60, 64).cuda(), torch.randint(0, 10, (60,)).cuda()
truth.batch(X, Y)
for epoch in range(5):
    opt.zero_grad()
    F.cross_entropy(net(X), Y).backward()
    opt.step()
opt.zero_grad()
params = list(net.parameters())
count = sum(p.numel() for p in params)
projector = torch.randn(count, 256, device="cuda").div_(16)
features = torch.zeros(60, 256, device="cuda")
truth.label("other", projector, features)
for i in range(60):
    loss = F.cross_entropy(net(X[i : i + 1]), Y[i : i + 1])
    grads = torch.autograd.grad(loss, params)
    flat = torch.cat([g.reshape(-1) for g in grads])
    features[i] = flat @ projector
truth.mark("features")
kernel = features @ features.t() + 0.1 * torch.eye(60, device="cuda")
b = torch.ones(60, 1, device="cuda")
x, r = torch.zeros_like(b), b.clone()
p = r.clone()
for _ in range(10):
    kp = kernel @ p
    alpha = (r * r).sum() / (p * kp).sum()
    x, rn = x + alpha * p, r - alpha * kp
    p = rn + (rn * rn).sum() / (r * r).sum() * p
    r = rn
