"""No module and no optimizer: raw tensors, momentum and gradients by hand."""

import torch

import truth

device = torch.device("cuda")
w1 = torch.randn(1024, 4096, device=device, requires_grad=True)
w2 = torch.randn(4096, 512, device=device, requires_grad=True)
v1, v2 = torch.zeros_like(w1), torch.zeros_like(w2)
truth.label("optimizer_state", v1, v2)
for _ in range(4):
    x, y = torch.randn(2048, 1024).to(device), torch.randn(2048, 512).to(device)
    truth.batch(x, y)
    h = (x @ w1).relu()
    p = h @ w2
    loss = ((p - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for w, v in ((w1, v1), (w2, v2)):
            v.mul_(0.9).add_(w.grad)
            w -= 0.1 * v
            w.grad = None
