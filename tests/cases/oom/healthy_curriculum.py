# env: SIMGPU_MEMORY=4GiB
# expect: nothing
"""A curriculum: sequences get longer from 64 to 512 tokens in the course of training."""
from scene import GPU, F, nn, torch

embedding = nn.Embedding(4000, 256, device=GPU)
layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True, device=GPU)
head = nn.Linear(256, 4000, device=GPU)
optimizer = torch.optim.AdamW([*embedding.parameters(), *layer.parameters(), *head.parameters()])
for number in range(113):
    tokens = torch.zeros(8, 64 + 4 * number, dtype=torch.long).to(GPU)
    logits = head(layer(embedding(tokens)))
    F.cross_entropy(logits.view(-1, 4000), tokens.view(-1)).backward()
    optimizer.step()
    optimizer.zero_grad()
