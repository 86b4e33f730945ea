# env: SIMGPU_CAPABILITY=8.0
"""GPT-2 small under autocast on compute capability 8.0: attention is a kernel of PyTorch's own."""

from common import GPT, batch, done, torch, train

model = GPT().cuda()
train(model, torch.optim.AdamW(model.parameters()), 3, lambda: batch(4), amp=torch.bfloat16)
done(__file__)
