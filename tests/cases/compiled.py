"""torch.compile with its default compiler: Triton kernels, compiled here and loaded through the driver."""

from common import done, nn, torch

model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
compiled = torch.compile(model)
for _ in range(3):
    compiled(torch.empty(64, 1024, device="cuda")).sum().backward()
done(__file__)
