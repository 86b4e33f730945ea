# env: SIMGPU_MEMORY=2GiB
# expect: oom spike
# advice: cut long inputs
# why: steps_before_bytes 100
"""Plain SGD, whose steps allocate nothing; one batch of many has a text of 3000 tokens."""

from scene import GPU, REPAIRED, F, nn, torch

embedding = nn.Embedding(8000, 256, device=GPU)
layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, device=GPU)
head = nn.Linear(256, 8000, device=GPU)
parameters = [*embedding.parameters(), *layer.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for number in range(50):
    length = 200 + number * 7 % 5 * 25
    if number == 40 and not REPAIRED:
        length = 3000
    tokens = torch.zeros(16, length, dtype=torch.long).to(GPU)
    optimizer.zero_grad()
    logits = head(layer(embedding(tokens)))
    F.cross_entropy(logits.view(-1, 8000), tokens.view(-1)).backward()
    optimizer.step()
