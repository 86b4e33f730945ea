"""What more than a category is told of memory: a hand counts the bytes, and the line is that of the program."""

import re

import pytest

import support
import warm_torch

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

MIB = 1 << 20
SLACK_BYTES = 64 << 10  # biases, losses
TRAINED = """
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

SIDE = 1024  # a square of them is 4 MiB in single, 2 MiB in half precision
layers = [nn.Linear(SIDE, SIDE), nn.ReLU(), nn.Linear(SIDE, SIDE), nn.ReLU(), nn.Linear(SIDE, SIDE)]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters())
kept = []

def batch(dtype=torch.float32):
    return torch.randn(SIDE, SIDE, device="cuda", dtype=dtype)

def step(result):
    result.sum().backward()
    optimizer.step()
    optimizer.zero_grad()

"""
# Program, bytes at its peak (which it brings about by a tensor larger than all else), category, detail; the lines
# that made it end with "# here".
PEAK = "\npeak = torch.ones(64 << 20, device='cuda')\n"
CASES = {
    # Weights of half the precision are there from the first use in a region to the backward pass.
    "autocast": (
        """
for _ in range(3):
    with torch.autocast("cuda", torch.bfloat16):
        out = model(batch(torch.bfloat16).requires_grad_())  # here
    step(out)
with torch.autocast("cuda", torch.bfloat16):
    out = model(batch(torch.bfloat16).requires_grad_())  # here
    peak = torch.ones(64 << 20, device='cuda')
del peak
step(out)
""",
        3 * 2 * MIB,
        "activations",
        "autocast copy of a weight",
    ),
    # A backward pass inside of the region leaves them where they are.
    "autocast_held": (
        """
for _ in range(3):
    with torch.autocast("cuda", torch.bfloat16):
        step(model(batch(torch.bfloat16)))  # here
        peak = torch.ones(64 << 20, device='cuda')
    del peak
""",
        3 * 2 * MIB,
        "activations",
        "autocast copy, held after backward",
    ),
    "ema": (
        "ema = {k: v.detach().clone() for k, v in model.state_dict().items()}  # here\n"
        "for _ in range(6):\n    step(model(batch()))\n" + PEAK,
        3 * 4 * MIB,
        "other",
        "copy of a parameter",
    ),
    "kept": (
        "for _ in range(6):\n"
        "    x = batch()\n"
        "    out = model(x)\n"
        "    kept.append(out.detach() * 2)  # here\n"
        "    step(out)\n" + PEAK,
        6 * 4 * MIB,
        "other",
        "kept by the program",
    ),
    "no_grad": (
        "step(model(batch()))\n"
        "with torch.no_grad():\n"
        "    for _ in range(6):\n"
        "        x = batch()\n"
        "        kept.append(model(x))  # here\n" + PEAK + "\ndel peak\nfor _ in range(3):\n    step(model(batch()))\n",
        6 * 4 * MIB,
        "other",
        "output without a graph",
    ),
    "retained": (
        "for _ in range(6):\n    kept.append(model(batch()))  # here\n    step(kept[-1] * 1)\n" + PEAK,
        None,  # until when a graph is no older than a step is counted is the rule's; the line is not
        "activations",
        "retained graph",
    ),
    # The ReLU's result is made again, when the backward pass asks for it.
    "recomputed": (
        """
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        peak = torch.ones(64 << 20, device='cuda')
        return gradient * 2

class Block(nn.Module):
    def forward(self, x):
        return Slow.apply(model[1](model[0](x)))  # here

block = Block()
for _ in range(3):
    step(model[2](checkpoint(block, batch().requires_grad_(), use_reentrant=False)))
""",
        4 * MIB,
        "activations",
        "recomputed in backward",
    ),
    "held": (
        """
for _ in range(3):
    out = model(batch())  # here
    step(out)
    del out
out = model(batch())  # here
loss = out.sum()
peak = torch.ones(64 << 20, device='cuda')
loss.backward()
""",
        4 * MIB,
        "activations",
        "held by the program",
    ),
    # Nothing trains: what a line computed is temporary, or there at the end.
    "untrained": (
        "def work(x):\n"
        "    return x * 2  # here\n"
        "x = batch()\n"
        "kept = [work(x) for _ in range(3)]\n"
        "for _ in range(5):\n"
        "    work(x)\n" + PEAK + "del peak\n",
        3 * 4 * MIB,
        "other",
        "kept by the program",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_detail_is_told_with_its_bytes_and_its_line(name, tmp_path):
    program, bytes_, category, detail = CASES[name]
    source = TRAINED + program
    (tmp_path / "program.py").write_text(source)
    trace = tmp_path / "run.mtrace"
    status, output = warm_torch.server("2.15", True).run(
        tmp_path / "program.py",
        tmp_path,
        {"MEMTRACE_OUTPUT": str(trace), "MEMTRACE_SUMMARY": "file"},
    )
    assert status == 0, output[-2000:]
    (device,) = support.report(trace)["devices"]
    told = [row for row in device["peak"]["stacks"] if row["detail"] == detail]
    large = [row for row in told if row["bytes"] > SLACK_BYTES]
    assert large and {row["category"] for row in large} == {category}, device["peak"]["stacks"]
    lines = {n for n, line in enumerate(source.splitlines(), 1) if line.endswith("# here")}
    for row in large:
        ours = [frame for frame in row["python"] if "/program.py:" in frame]
        assert int(re.search(r"program\.py:(\d+)", ours[0]).group(1)) in lines, row["python"]
    if bytes_ is not None:
        assert abs(sum(row["bytes"] for row in told) - bytes_) <= SLACK_BYTES, told
    text = support.memtrace("report", "--by", "category", trace)
    (row, *_) = re.findall(rf"^  {category}: {re.escape(detail)}(.*)$", text, re.M)
    assert category != "other" or re.match(r", .*program\.py:\d+ ", row), text
