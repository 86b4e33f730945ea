# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""A cell run over sequences of many lengths, and long validations: forward passes without a backward
are many, and none of it grows."""

from scene import GPU, nn, step, torch

cell = nn.GRUCell(256, 256, device=GPU)
optimizer = torch.optim.Adam(cell.parameters())


def run(length):
    state = torch.zeros(256, 256, device=GPU)
    for _ in range(length):
        state = cell(torch.randn(256, 256, device=GPU), state)
    return state.square().mean()


for epoch in range(3):
    for length in (4, 16, 40, 8, 30, 100):
        step(optimizer, run(length))
    with torch.no_grad():
        print(sum(run(20).item() for _ in range(10)))
