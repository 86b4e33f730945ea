"""Four small batches a step, and an optimizer that works on one parameter at a time."""

from common import GPT, batch, done, torch, train

model = GPT(layers=6).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
train(model, optimizer, 2, lambda: batch(2), amp=torch.bfloat16, accumulate=4)
done(__file__)
