# env: SIMGPU_MEMORY=8GiB
# expect: finding kept_graph
# advice: del the loss
"""Two losses share a part of their graph, so the first leaves it whole; its variable holds it into the next step."""

from scene import GPU, REPAIRED, Mlp, batch, torch

maker, judge = Mlp(1024).to(GPU), Mlp(1024).to(GPU)
of_maker, of_judge = [torch.optim.Adam(model.parameters()) for model in (maker, judge)]
for _ in range(8):
    made = maker(batch(8192, 1024))
    loss = judge(made).square().mean() + judge(batch(8192, 1024)).square().mean()
    of_judge.zero_grad()
    loss.backward(retain_graph=True)
    of_judge.step()
    if REPAIRED:
        del loss
    again = judge(made).square().mean()
    of_maker.zero_grad()
    again.backward()
    of_maker.step()
