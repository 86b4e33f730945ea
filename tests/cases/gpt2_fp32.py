"""GPT-2 small in full precision, three steps of AdamW."""

from common import GPT, batch, done, torch, train

model = GPT().cuda()
train(model, torch.optim.AdamW(model.parameters()), 3, lambda: batch(4))
done(__file__)
