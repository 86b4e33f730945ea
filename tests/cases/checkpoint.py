"""Activation checkpointing of every block: the forward pass runs again inside the backward."""

from common import GPT, batch, done, torch, train

model = GPT(checkpoint=True).cuda()
train(model, torch.optim.AdamW(model.parameters()), 3, lambda: batch(8), amp=torch.bfloat16)
done(__file__)
