"""What the programs of this folder share: a training loop whose parts the words in LEVERS change.

    checkpoint       blocks are made again in the backward pass (models that take `wrap`)
    amp              autocast to bfloat16
    sgd, adam8bit    instead of Adam
    half             half the batch, twice a step
    keep_gradients   zero_grad(set_to_none=False)
    evaluate_graph   after each step a larger batch, without torch.no_grad()
    evaluate         the same within torch.no_grad()

The last line that a program prints is PEAK and what PyTorch counted.
"""

import os

import torch
import torch.utils.checkpoint

WORDS = set(os.environ.get("LEVERS", "").split())
STEPS = 4
EVALUATION = 3  # times the batch


def has(word):
    return word in WORDS


def wrap(block, x):
    if has("checkpoint") and torch.is_grad_enabled():
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    return block(x)


def make_optimizer(parameters):
    if has("sgd"):
        return torch.optim.SGD(parameters, lr=1e-3)
    if has("adam8bit"):
        import bitsandbytes

        return bitsandbytes.optim.Adam8bit(parameters)
    return torch.optim.Adam(parameters)


def evaluate(model, batch, loss_of):
    with torch.set_grad_enabled(has("evaluate_graph")):
        inputs, targets = batch()
        loss_of(model(inputs), targets).item()


def train(model, size, make_batch, loss_of):
    """make_batch(size) gives inputs and targets."""
    optimizer = make_optimizer(model.parameters())
    parts = 2 if has("half") else 1
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=not has("keep_gradients"))
        for _ in range(parts):
            inputs, targets = make_batch(size // parts)
            with torch.autocast("cuda", torch.bfloat16, enabled=has("amp")):
                loss = loss_of(model(inputs), targets)
            loss.backward()
        optimizer.step()
        del inputs, targets, loss
        if has("evaluate") or has("evaluate_graph"):
            optimizer.zero_grad()
            evaluate(model, lambda: make_batch(size * EVALUATION), loss_of)
    torch.cuda.synchronize()
    print("PEAK", torch.cuda.max_memory_allocated(), flush=True)
    os._exit(0)  # an abort of Python's at exit says nothing about memory
