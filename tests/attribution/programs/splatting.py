"""Points that are parameters of their own and grow in number: now and then some are cloned, and the optimizer's
state is joined with zeros for them."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth

SIDE = 256


class Points:
    def __init__(self, count):
        make = {"places": (3,), "colours": (48,), "scales": (3,), "turns": (4,), "opacity": (1,)}
        self.parts = {
            name: nn.Parameter(torch.randn(count, *shape, device="cuda")) for name, shape in make.items()
        }
        groups = [{"params": [p], "name": name, "lr": 1e-3} for name, p in self.parts.items()]
        self.optimizer = torch.optim.Adam(groups, eps=1e-15)
        self.seen = torch.zeros(count, device="cuda")
        truth.label("other", self.seen)

    def grow(self, count):
        for group in self.optimizer.param_groups:
            old = group["params"][0]
            more = old.detach()[:count].clone()
            state = self.optimizer.state.pop(old)
            state["exp_avg"] = torch.cat([state["exp_avg"], torch.zeros_like(more)])
            state["exp_avg_sq"] = torch.cat([state["exp_avg_sq"], torch.zeros_like(more)])
            new = nn.Parameter(torch.cat([old.detach(), more]))
            truth.label("optimizer_state", state["exp_avg"], state["exp_avg_sq"])
            group["params"][0] = self.parts[group["name"]] = new
            self.optimizer.state[new] = state
            truth.label("parameters", new)
        self.seen = torch.zeros(len(self.parts["places"]), device="cuda")
        truth.label("other", self.seen)


def render(points, camera):
    parts = points.parts
    flat = (parts["places"] @ camera[:3, :3] + camera[:3, 3])[:, :2].sigmoid() * (SIDE - 1)
    size = parts["scales"].exp() * F.normalize(parts["turns"], dim=1)[:, :3]
    colour = parts["colours"].view(-1, 16, 3).mean(1) * parts["opacity"].sigmoid() * size.mean(1, keepdim=True)
    where = flat[:, 0].long() * SIDE + flat[:, 1].long()
    colour = colour * (1 - (flat - flat.detach().round()).square().sum(1, keepdim=True))
    return torch.zeros(SIDE * SIDE, 3, device="cuda").index_add(0, where, colour)


points = Points(200_000)
views = [(torch.eye(4).cuda(), torch.rand(SIDE * SIDE, 3).cuda()) for _ in range(4)]
truth.batch(views)
for step in range(12):
    camera, picture = views[step % len(views)]
    made = render(points, camera)
    loss = F.l1_loss(made, picture)
    loss.backward()
    with torch.no_grad():
        points.seen += points.parts["places"].grad.norm(dim=1)
        points.optimizer.step()
        points.optimizer.zero_grad(set_to_none=True)
        if step in (3, 7):
            points.grow(50_000)
            truth.mark("grown")
