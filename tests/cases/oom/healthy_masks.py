# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""A causal mask is made anew for each length, which grows by some tokens a batch, at module level."""

from scene import GPU, torch

with torch.no_grad():
    for length in range(256, 1024, 8):
        x = torch.empty(1, length, 64).to(GPU)
        mask = torch.ones(length, length, device=GPU).tril()
        out = ((x @ x.transpose(-1, -2)) * mask).softmax(-1) @ x
        print(out.mean().item())
