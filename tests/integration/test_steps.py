"""`memtrace steps` and the tables by operator, module and category, on real training, against
figures that PyTorch's own objects gave or that a hand counts."""

import json
import re

import pytest

import support

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

# What PyTorch says is allocated at each border is printed by the program itself.
PROGRAM = """
import torch
import torch.nn as nn

def allocated():
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated()

class Tail(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 256)

    def forward(self, x):
        return self.layer(x).relu()

model = nn.Sequential(nn.Linear(1024, 512), Tail()).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(6):
    x = torch.zeros(256 if step != 4 else 512, 1024, device="cuda")
    optimizer.zero_grad()
    out = model(x)
    forward = allocated()
    loss = out.sum()
    loss.backward()
    backward = allocated()
    optimizer.step()
    del x, out, loss
    print("STEP", forward, backward, allocated())
"""
SLACK_BYTES = 4096  # the loss itself, which the borders may or may not have


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    (folder / "train.py").write_text(PROGRAM)
    trace = folder / "run.mtrace"
    result = support.run(
        [support.PYTHON, "train.py"], support.environment(MEMTRACE_OUTPUT=str(trace)), cwd=folder
    )
    assert "STEP" in result.stdout, result.stderr
    truth = [[int(n) for n in line.split()[1:]] for line in re.findall("STEP.*", result.stdout)]
    return trace, truth


def test_borders_of_steps_are_what_pytorch_said(trained):
    trace, truth = trained
    steps = [s for s in json.loads(support.memtrace("steps", "--json", trace))["steps"]]
    done = [step for step in steps if not step["open"]]
    assert [step["step"] for step in done] == [1, 2, 3, 4, 5, 6]
    for step, (forward, backward, optimizer) in zip(done, truth):
        assert abs(step["after"]["forward"] - forward) <= SLACK_BYTES
        assert abs(step["after"]["backward"] - backward) <= SLACK_BYTES
        assert step["peak_bytes"] == max(bytes or 0 for bytes in step["phase_peaks"].values())
    # The optimizer's border is seen before the program drops its batch.
    assert [step["change_bytes"] for step in done][2:4] == [0, 0]
    assert done[0]["change_bytes"] is None


LOSS = """
import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3):
    x = torch.zeros(1024, 64, device="cuda")
    made = model(x)
    torch.cuda.reset_peak_memory_stats()
    loss = torch.cat([made.detach()] * {loss}).sum() * 0 + made.sum()
    print("LOSS", torch.cuda.max_memory_allocated())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del x, made, loss
    if {evaluation} > {loss}:
        with torch.no_grad():
            model(torch.zeros(64, 64, device="cuda")).repeat(16 * {evaluation}, 1).sum()
"""


@pytest.mark.parametrize("evaluation, loss, phase", [(1, 256, "forward"), (384, 256, "other")])
def test_a_loss_outside_of_modules_is_of_the_forward_pass(evaluation, loss, phase, tmp_path):
    """What a program computes of an evaluation is of no phase."""
    (tmp_path / "train.py").write_text(LOSS.format(evaluation=evaluation, loss=loss))
    trace = tmp_path / "run.mtrace"
    result = support.run(
        [support.PYTHON, "train.py"], support.environment(MEMTRACE_OUTPUT=str(trace)), cwd=tmp_path
    )
    truth = [int(n) for n in re.findall(r"LOSS (\d+)", result.stdout)]
    told = support.report(trace)
    assert len(truth) == 3 and told["devices"][0]["peak"]["phase"] == phase
    last = [step for step in told["steps"] if not step["open"]][2]
    assert last["phase_peaks"]["forward"] == truth[2]


def test_equal_steps_are_one_row_unless_all_are_wanted(trained):
    trace, _ = trained
    rows = re.findall(r"^  (first|step \d|steps \d to \d|since step \d) ", support.memtrace("steps", trace), re.M)
    assert rows == ["first", "steps 2 to 4", "step 5", "step 6"]
    full = support.memtrace("steps", "--full", trace)
    assert re.findall(r"^  (?:first|step \d) ", full, re.M) == ["  first "] + [
        f"  step {n} " for n in range(2, 7)
    ]
    for verb in ("steps", "flame"):
        other = support.run([support.TOOL, verb, "--device", "1", trace], support.environment(preload=False))
        assert (other.returncode, other.stdout) == (1, "")
        assert other.stderr == f"memtrace: {trace}: no memory was allocated on that GPU\n"


def test_the_summary_tells_categories_and_steps(trained):
    trace, _ = trained
    summary = support.memtrace("report", trace)
    assert re.search(r"The peak: .* in step 5 of 6, ", summary)
    assert re.search(r"^  optimizer state +\d+", summary, re.M) and "Step by step (" in summary
    assert re.search(r"^  train.py:\d+ <?\w*", summary, re.M)
    assert len(summary.splitlines()) <= 40


def test_by_operator_module_and_category(trained):
    trace, _ = trained
    by_op = support.memtrace("report", "--by", "op", trace)
    assert re.search(r"^  aten::zeros_like .* optimizer state$", by_op, re.M)
    assert re.search(r"^  AddmmBackward0 ", by_op, re.M) and re.search(r"^  aten::relu ", by_op, re.M)
    by_module = support.memtrace("report", "--by", "module", trace)
    assert re.search(r"^  train.py Tail.forward ", by_module, re.M)
    assert re.search(r"^  \(outside of modules\) ", by_module, re.M)
    by_category = support.memtrace("report", "--by", "category", "--json", trace)
    assert json.loads(by_category)["devices"][0]["peak"]["categories"]["optimizer_state"]
