"""What the programs of this folder share: a training loop whose parts the words in LEVERS change.

    checkpoint       blocks are made again in the backward pass (models that take `wrap`)
    amp              autocast to bfloat16
    bfloat16         the model is of two bytes a parameter (gpt)
    sgd, adam8bit    instead of Adam
    half             half the batch, twice a step
    keep_gradients   zero_grad(set_to_none=False)
    half_length      half the tokens (models that ask `length`)
    inside           backward() and step() within autocast
    manual_attention scores of every token with every other (models that have attention)
    chunks           the loss of a part of the tokens at a time (models that take `chunked_loss`)
    evaluate_graph   after each step a larger batch, without torch.no_grad()
    evaluate         the same within torch.no_grad()
    evaluate_all     after each step many batches within torch.no_grad(), whose results are kept to the end,
    evaluate_join    are joined one by one,
    evaluate_cpu     or are moved to the CPU

The last line that a program prints is PEAK and what PyTorch counted.
"""

import os

import torch
import torch.nn.functional as F
import torch.utils.checkpoint

WORDS = set(os.environ.get("LEVERS", "").split())
STEPS = 4
EVALUATION = 3  # times the batch
BATCHES = 12


def has(word):
    return word in WORDS


def wrap(block, x):
    if has("checkpoint") and torch.is_grad_enabled():
        return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    return block(x)


def length(tokens):
    return tokens // 2 if has("half_length") else tokens


def attention(q, k, v):
    """Causal."""
    if not has("manual_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    future = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ v


def part_loss(head, hidden, targets):
    return F.cross_entropy(head(hidden).float(), targets, reduction="sum")


def chunked_loss(head, hidden, targets, chunks=8):
    """Logits are made again in the backward pass, so those of one part are there at a time."""
    hidden, targets = hidden.flatten(0, -2), targets.flatten()
    total = 0
    for part, wanted in zip(hidden.chunk(chunks), targets.chunk(chunks)):
        total = total + torch.utils.checkpoint.checkpoint(
            part_loss, head, part, wanted, use_reentrant=False
        )
    return total / len(targets)


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


def evaluate_all(model, batch):
    results = []
    with torch.no_grad():
        for _ in range(BATCHES):
            made = model(batch()[0])
            if has("evaluate_join") and results:
                results = [torch.cat([results[0], made])]
            else:
                results.append(made.cpu() if has("evaluate_cpu") else made)
            del made
        torch.cat(results).mean().item()


def train(model, size, make_batch, loss_of):
    """make_batch(size) gives inputs and targets."""
    optimizer = make_optimizer(model.parameters())
    parts = 2 if has("half") else 1
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=not has("keep_gradients"))
        for part in range(parts):
            inputs, targets = make_batch(size // parts)
            with torch.autocast("cuda", torch.bfloat16, enabled=has("amp")):
                loss = loss_of(model(inputs), targets)
                if has("inside"):
                    loss.backward()
                    if part == parts - 1:
                        optimizer.step()
            if not has("inside"):
                loss.backward()
        if not has("inside"):
            optimizer.step()
        del inputs, targets, loss
        if has("evaluate") or has("evaluate_graph"):
            optimizer.zero_grad()
            evaluate(model, lambda: make_batch(size * EVALUATION), loss_of)
        if WORDS & {"evaluate_all", "evaluate_join", "evaluate_cpu"}:
            optimizer.zero_grad()
            evaluate_all(model, lambda: make_batch(size))
    torch.cuda.synchronize()
    print("PEAK", torch.cuda.max_memory_allocated(), flush=True)
    os._exit(0)  # an abort of Python's at exit says nothing about memory
