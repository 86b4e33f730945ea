"""Several optimizers in a row, most of them stepped by one line of the program, with nothing
between their steps: some allocate, some launch a kernel and no more. The counts are those that the
program made itself, a line each part. CASE_PARTS=a,b runs those parts alone."""

import json
import os
import sys
import threading

from common import done, nn, torch

lock = threading.Lock()
counts = {"steps": 0, "backwards": 0}


def note(what, times=1):
    with lock:
        counts[what] += times


def networks(count=3):
    layers = [(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32)) for _ in range(count)]
    return [nn.Sequential(*each).cuda() for each in layers]


def backward(models):
    loss = sum(model(torch.randn(16, 64).cuda()).square().mean() for model in models)
    loss.backward()
    note("backwards")
    return loss


def train(models, step, steps_each, iterations=3):
    """`step` counts as `steps_each` steps."""
    for _ in range(iterations):
        backward(models)
        step()
        note("steps", steps_each)
        for model in models:
            model.zero_grad()


def step_all(optimizers):
    for optimizer in optimizers:
        optimizer.step()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


KINDS = {
    "sgd": sgd,
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd_each": lambda p: torch.optim.SGD(p, lr=0.1, foreach=False),
    "fused": lambda p: torch.optim.AdamW(p, fused=True),
    "foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "each": lambda p: torch.optim.Adam(p, foreach=False),
}


# ---- optimizers that somebody wrote -----------------------------------------------------------


class Signs(torch.optim.Optimizer):
    """Allocates nothing. `self` is in a cell, which is new at every call."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-3})

    @torch.no_grad()
    def step(self, closure=None):
        def update(p):
            p.add_(p.grad, alpha=-self.param_groups[0]["lr"])

        for group in self.param_groups:
            for p in group["params"]:
                update(p)


class Lookahead(torch.optim.Optimizer):
    """Steps another one on the way, which is one step in all."""

    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups[0]["params"], {})

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.mul_(0.999)
        self.inner.step()
        for p in self.param_groups[0]["params"]:
            p.mul_(0.999)


class Wrapped(torch.optim.Optimizer):
    """Looks like an optimizer and hands on, as accelerate's does."""

    def __init__(self, inner):
        self.inner = inner

    def step(self, closure=None):
        self.inner.step(closure)


class Sharpness(torch.optim.Optimizer):
    """Two passes a step: SAM."""

    def __init__(self, parameters, inner):
        super().__init__(parameters, {})
        self.inner = inner

    @torch.no_grad()
    def first_step(self):
        for p in self.param_groups[0]["params"]:
            p.add_(p.grad, alpha=0.05)

    @torch.no_grad()
    def second_step(self):
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=0.05)
        self.inner.step()


class Checkpointed(nn.Module):
    """One backward runs inside another."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x.requires_grad_(), use_reentrant=True)


class Several:
    """No optimizer: every one of those that it has takes a step of its own."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


# ---- the parts --------------------------------------------------------------------------------


def in_a_loop():
    for make in KINDS.values():
        for count in (2, 3):
            models = networks(count)
            optimizers = [make(model.parameters()) for model in models]
            train(models, lambda: step_all(optimizers), count)
            train(models, lambda: [optimizer.step() for optimizer in optimizers], count)


def of_several_classes():
    models = networks(3)
    kinds = (KINDS["fused"], sgd, sgd)
    optimizers = [make(model.parameters()) for make, model in zip(kinds, models)]
    train(models, lambda: step_all(optimizers), 3)
    train(models, Several(*optimizers).step, 3)


def by_hand():
    models = networks(2)
    signs = [Signs(model.parameters()) for model in models]
    train(models, lambda: step_all(signs), 2)
    ahead = [Lookahead(sgd(model.parameters())) for model in models]
    train(models, ahead[0].step, 1)
    train(models, lambda: step_all(ahead), 2)
    wrapped = [Wrapped(sgd(model.parameters())) for model in models]
    train(models, lambda: step_all(wrapped), 2)


def in_two_passes():
    models = networks(2)
    for _ in range(3):
        backward(models)
        sharp = [Sharpness(list(m.parameters()), sgd(m.parameters())) for m in models]
        for optimizer in sharp:
            optimizer.first_step()
        backward(models)
        for optimizer in sharp:
            optimizer.second_step()
        note("steps", 2)


def with_schedules():
    models = networks(2)
    optimizers = [sgd(model.parameters()) for model in models]
    schedules = [torch.optim.lr_scheduler.StepLR(optimizer, 1) for optimizer in optimizers]

    def step():
        step_all(optimizers)
        for schedule in schedules:
            schedule.step()

    train(models, step, 2)


def scaled():
    """First, while device memory is all 0: a step is left out where a gradient is said to be infinite,
    which the simulated GPU does not work out."""
    models = networks(2)
    optimizers = [sgd(model.parameters()) for model in models]
    for optimizer in optimizers:
        optimizer.register_step_post_hook(lambda *_: note("steps"))
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        loss = sum(model(torch.randn(16, 64).cuda()).square().mean() for model in models)
        scaler.scale(loss).backward()
        note("backwards")
        for optimizer in optimizers:
            scaler.unscale_(optimizer)
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
    assert counts["steps"] == 6


def with_closures():
    """Each evaluates as often as it likes."""
    models = networks(2)
    optimizers = [torch.optim.LBFGS(m.parameters(), lr=0.1, max_iter=3) for m in models]
    for _ in range(2):
        for model, optimizer in zip(models, optimizers):

            def closure():
                optimizer.zero_grad()
                return backward([model])

            optimizer.step(closure)
            note("steps")


def after_much_else():
    """More kernels between a backward and the steps than a model has layers."""
    models = networks(2)
    optimizers = [sgd(model.parameters()) for model in models]
    parameters = [p for model in models for p in model.parameters()]

    def step():
        for _ in range(200):
            for p in parameters:
                p.grad.mul_(0.999)
        step_all(optimizers)

    train(models, step, 2)


def after_evaluation():
    """Modules run between a backward and the steps, and between these."""
    models = networks(2)
    optimizers = [sgd(model.parameters()) for model in models]

    def evaluate():
        with torch.no_grad():
            return sum(models[0](torch.randn(8, 64).cuda()).argmax(1).sum() for _ in range(3))

    def step():
        for optimizer in optimizers:
            evaluate()
            optimizer.step()

    train(models, step, 2)


def in_backward():
    """From the thread of autograd, one for each parameter, while backward goes on."""
    checkpointed = [Checkpointed(model) for model in networks(2)]
    for make, models in ((sgd, networks(2)), (KINDS["each"], networks(2)), (sgd, checkpointed)):
        optimizers = {p: make([p]) for model in models for p in model.parameters()}

        def step(p):
            optimizers[p].step()
            optimizers[p].zero_grad()
            note("steps")

        for p in optimizers:
            p.register_post_accumulate_grad_hook(step)
        for _ in range(3):
            backward(models)


def on_threads():
    def run():
        models = networks(2)
        optimizers = [sgd(model.parameters()) for model in models]
        train(models, lambda: step_all(optimizers), 2)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def compiled():
    models = networks(2)
    optimizers = [sgd(model.parameters()) for model in models]
    steps = [torch.compile(optimizer.step, backend="eager") for optimizer in optimizers]

    def step():
        for function in steps:
            function()

    train(models, step, 2)


PARTS = (scaled, in_a_loop, of_several_classes, by_hand, in_two_passes, with_schedules)
PARTS += (with_closures, after_much_else, after_evaluation, in_backward, on_threads, compiled)
chosen = os.environ.get("CASE_PARTS")
for part in PARTS:
    if not chosen or part.__name__ in chosen.split(","):
        before = dict(counts)
        part()
        print(part.__name__, {key: counts[key] - before[key] for key in counts}, file=sys.stderr)
print("counts", json.dumps(counts))
done(__file__)
