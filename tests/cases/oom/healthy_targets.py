# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""A ring buffer of frames on the GPU that fills slowly, and a target network."""
import collections
import copy

from scene import GPU, F, nn, torch

net = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 4)).to(GPU)
target = copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters())
memory = collections.deque(maxlen=100)
for number in range(300):
    memory.append(torch.randn(64, 1024, device=GPU))
    if number > 20:
        batch = torch.cat([memory[-1 - i * (len(memory) // 8)] for i in range(8)])
        with torch.no_grad():
            goal = target(batch).max(1).values
        F.mse_loss(net(batch).max(1).values, goal).backward()
        optimizer.step()
        optimizer.zero_grad()
    if number % 50 == 0:
        target.load_state_dict(net.state_dict())
