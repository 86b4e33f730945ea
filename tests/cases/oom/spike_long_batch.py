# env: SIMGPU_MEMORY=3GiB
# expect: oom spike
# advice: cut long inputs
# why: steps_before_bytes 512
"""Texts of about 300 tokens; one batch has a text of 4000, to which all of its texts are padded."""

from scene import GPU, REPAIRED, F, nn, step, torch

VOCABULARY = 8000
embedding = nn.Embedding(VOCABULARY, 256, device=GPU)
layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, device=GPU)
head = nn.Linear(256, VOCABULARY, device=GPU)
parameters = [*embedding.parameters(), *layer.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters)
for number in range(40):
    length = 280 + number % 5 * 16
    if number == 29:
        length = 512 if REPAIRED else 4000
    tokens = torch.zeros(16, length, dtype=torch.long).to(GPU)
    logits = head(layer(embedding(tokens)))
    step(optimizer, F.cross_entropy(logits.view(-1, VOCABULARY), tokens.view(-1)))
