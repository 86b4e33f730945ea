# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""The loss over a large vocabulary in pieces, so that the logits never lie there whole."""

from scene import GPU, F, batch, nn, torch

body, head = nn.Linear(256, 256).to(GPU), nn.Linear(256, 32000, bias=False).to(GPU)
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()])
for _ in range(10):
    hidden = body(batch(4096, 256))
    leaf = hidden.detach().requires_grad_()
    for rows in leaf.split(512):
        F.cross_entropy(head(rows), torch.zeros(512, dtype=torch.long, device=GPU)).backward()
    hidden.backward(leaf.grad)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
