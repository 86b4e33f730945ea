"""A bidirectional LSTM: cuDNN's workspace and reserve, and weights flattened into one block."""

from common import done, nn, torch

lstm = nn.LSTM(256, 512, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1).cuda()
head = nn.Linear(1024, 10).cuda()
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
for _ in range(3):
    states, _ = lstm(torch.empty(32, 100, 256, device="cuda"))
    head(states).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
done(__file__)
