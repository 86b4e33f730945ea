"""How many runs and seconds `memtrace fit` takes: with programs that are nothing but their
allocations, and with a small GPT on PyTorch."""

import json
import sys

from figures import BUILD, PYTHON, ROOT, SHORT, TOOL, Figure, environment, run, title

TRAINING = BUILD / "tests" / "programs" / "training"


def fit(folder, cards, memory, vary, *program):
    """(runs, seconds) for all cards together."""
    command = [TOOL, "fit", "--json", "--card", cards, "--memory", memory, "--vary", vary, "--", *program]
    result = run(command, environment(preload=False, TMPDIR=str(folder)), cwd=folder, timeout=900)
    if result.returncode:
        sys.exit(f"bench: memtrace fit: exit status {result.returncode}\n{result.stderr[-2000:]}")
    answer = json.loads(result.stdout)
    return answer["runs"], answer["seconds"]


def searches(folder):
    """Figures of memtrace fit."""
    title("memtrace fit, batches 1 to 512")
    runs, seconds = {}, {}
    for model in ("linear", "plateau", "jagged", "cached"):
        runs[model], seconds[model] = fit(folder, "t4,a10,h100", "900MiB", "B=1:512", TRAINING, model, "{B}")
    even = [count / 3 for model, count in runs.items() if model != "cached"]
    yield Figure("runs for a card, memory without retries", even, "")
    yield Figure("  with retries", [runs["cached"] / 3], "")
    yield Figure("  four models on three cards, a model", list(seconds.values()), "s")
    if SHORT:
        return
    program = [PYTHON, ROOT / "examples/train_gpt.py", "--steps", "3", "--batch", "{B}"]
    count, seconds = fit(folder, "l4", "16GiB", "B=1:512", *program)
    yield Figure("GPT-2 small on 16 GiB: runs", [count], "")
    yield Figure("  all together", [seconds], "s")
    yield Figure("  a run", [seconds / count], "s")
