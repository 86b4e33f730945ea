"""What the levers promise, tried: each program is run again with the change that was advised, and the
saving is what PyTorch itself counted."""

import functools
import os
import pathlib
import re
import tempfile

import pytest

import support
import warm_torch

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

PROGRAMS = support.CASES / "levers"
TOLERANCE = 0.10  # of what was saved
SLACK = 0.01  # of the peak
WORTH = 0.06  # of the peak: a lever that saves less need not be told
LOOSE = 2  # times what was saved: a bound that is above says nothing

# The name in the report; the words of tests/cases/levers/training.py before and after.
LEVERS = {
    "checkpointing": ("", "checkpoint"),
    "mixed_precision": ("", "amp"),
    "sgd": ("", "sgd"),
    "adam_8bit": ("", "adam8bit"),
    "half_batch": ("", "half"),
    "set_to_none": ("keep_gradients", ""),
    "no_grad": ("evaluate_graph", "evaluate"),
    "kept_outputs": ("evaluate_all", "evaluate_cpu"),
    "half_length": ("", "half_length"),
    "autocast_copies": ("amp inside", "amp"),
    "fused_attention": ("manual_attention", ""),
    "chunked_loss": ("", "chunks"),
}
# Those after the third were written when the rules stood.
MODELS = ("gpt", "cnn", "lstm", "bert", "swin", "llama", "unet")
# Elsewhere the program has no word for it: an LSTM has no blocks to make again.
ONLY = {
    "checkpointing": set(MODELS) - {"lstm"},
    "half_length": {"gpt", "lstm", "bert", "llama"},
    "fused_attention": {"gpt", "bert", "llama"},
    "chunked_loss": {"gpt", "lstm", "llama"},
}
# Of these one model each is tried always.
ALWAYS = {
    "checkpointing": "gpt",
    "mixed_precision": "gpt",
    "sgd": "gpt",
    "adam_8bit": "gpt",
    "half_batch": "gpt",
    "set_to_none": "lstm",
    "no_grad": "lstm",
    "kept_outputs": "lstm",
    "half_length": "gpt",
    "autocast_copies": "lstm",
    "fused_attention": "gpt",
    "chunked_loss": "gpt",
}


# Of programs that have a word for little else.
MORE = [("checkpointing", "stages"), ("half_batch", "stages"), ("chunked_loss", "shifted")]


def chosen():
    if os.environ.get("MEMTRACE_FULL") != "1":
        return [*ALWAYS.items(), *MORE]
    every = [(lever, model) for lever in LEVERS for model in MODELS if model in ONLY.get(lever, MODELS)]
    return [*every, *MORE, ("mixed_precision", "odd_heads")]


@functools.cache
def peak_and_report(model, words):
    """PyTorch's own peak, and memtrace's report of the device."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        trace = folder / "run.mtrace"
        status, output = warm_torch.server("2.15", True).run(
            PROGRAMS / f"{model}.py",
            folder,
            {"LEVERS": words, "MEMTRACE_OUTPUT": str(trace), "MEMTRACE_SUMMARY": "file"},
        )
        peak = re.search(r"^PEAK (\d+)$", output, re.M)
        assert status == 0 and peak, output[-2000:]
        (device,) = support.report(trace)["devices"]
    return int(peak.group(1)), device


@pytest.mark.parametrize("lever,model", chosen())
def test_the_advised_saving_is_what_the_change_saves(lever, model):
    if lever == "adam_8bit" and not (warm_torch.LIBRARIES / "bitsandbytes").is_dir():
        pytest.skip("bitsandbytes is not installed (scripts/setup.sh full)")
    before, after = LEVERS[lever]
    peak, device = peak_and_report(model, before)
    assert device["allocated"]["peak_bytes"] == peak
    saved = peak - peak_and_report(model, after)[0]
    told = [row for row in device["levers"] if row["name"] == lever and row["applies"]]
    if not told:
        assert saved <= WORTH * peak
        return
    allowed = TOLERANCE * abs(saved) + SLACK * peak
    promised = told[0]["saves_bytes"]
    assert saved <= promised + allowed
    if told[0]["up_to"]:
        assert promised <= LOOSE * saved + WORTH * peak
    else:
        assert abs(saved - promised) <= allowed


def told_of(device, lever):
    return [row for row in device["levers"] if row["name"] == lever and row["applies"]]


@pytest.mark.parametrize("words", ["evaluate_all", "evaluate_join"])
def test_what_an_evaluation_keeps_does_not_shrink_with_the_batch(words):
    """It is the sum of all its batches, and has the line that makes most of it."""
    peak, device = peak_and_report("lstm", words)
    saved = peak - peak_and_report("lstm", "evaluate_cpu")[0]
    (row,) = told_of(device, "kept_outputs")
    assert abs(row["saves_bytes"] - saved) <= TOLERANCE * saved + SLACK * peak
    assert re.fullmatch(r"evaluation's results to the CPU \(training\.py:\d+\)", row["text"])
    for lever in ("half_batch", "half_length", "mixed_precision", "checkpointing", "leak"):
        assert not told_of(device, lever)


TRAINER = """
import torch
class Trainer:
    def evaluation_loop(self, model, batches, all_on_gpu):
        kept = []
        with torch.no_grad():
            for batch in batches:
                made = model(batch.cuda())
                kept.append(made if all_on_gpu else made.cpu())
                del made
            return torch.cat(kept)
"""
TRAINING = """
import importlib.util, os, torch
spec = importlib.util.spec_from_file_location("loops", "transformers/trainer.py")
loops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loops)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)], torch.nn.Linear(1024, 4096)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.zeros(1024, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    loops.Trainer().evaluation_loop(model, [torch.zeros(1024, 1024)] * 24, {!r})
torch.cuda.synchronize()
print("PEAK", torch.cuda.max_memory_allocated(), flush=True)
os._exit(0)
"""


def test_of_a_trainer_of_hugging_face_the_argument_is_named(tmp_path):
    # An evaluation_loop() of the same name and place stands for it: that is what is looked for.
    (tmp_path / "transformers").mkdir()
    (tmp_path / "transformers" / "trainer.py").write_text(TRAINER)
    peaks = []
    for all_on_gpu in (True, False):
        (tmp_path / "train.py").write_text(TRAINING.format(all_on_gpu))
        trace = tmp_path / f"{all_on_gpu}.mtrace"
        status, output = warm_torch.server("2.15", True).run(
            tmp_path / "train.py", tmp_path, {"MEMTRACE_OUTPUT": str(trace), "MEMTRACE_SUMMARY": "file"}
        )
        peak = re.search(r"^PEAK (\d+)$", output, re.M)
        assert status == 0 and peak, output[-2000:]
        peaks.append(int(peak.group(1)))
    (row,) = told_of(support.report(tmp_path / "True.mtrace")["devices"][0], "kept_outputs")
    assert row["text"].startswith("eval_accumulation_steps=1 (") and "Trainer" in row["reason"]
    saved = peaks[0] - peaks[1]
    assert abs(row["saves_bytes"] - saved) <= TOLERANCE * saved + SLACK * peaks[0]


def keeps_first_gradients(other_bytes):
    return f"""
import os, torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
kept = None
for step in range(4):
    if os.environ["LEVERS"]:
        optimizer.zero_grad()
    loss = model(torch.zeros(4096, 2048, device="cuda")).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del loss
    if step == 1:
        kept = torch.zeros({other_bytes} // 4, device="cuda")
torch.cuda.synchronize()
print("PEAK", torch.cuda.max_memory_allocated(), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("other_mib", [0, 200])
def test_a_first_step_unlike_the_others_is_no_measure(other_mib, tmp_path):
    """zero_grad() stands after the forward pass; after the first step something else is there too."""
    (tmp_path / "train.py").write_text(keeps_first_gradients(other_mib << 20))
    peaks = []
    for words in ("", "before"):
        status, output = warm_torch.server("2.15", True).run(
            tmp_path / "train.py",
            tmp_path,
            {"LEVERS": words, "MEMTRACE_OUTPUT": str(tmp_path / f"run{words}.mtrace"), "MEMTRACE_SUMMARY": "file"},
        )
        peaks.append(int(re.search(r"^PEAK (\d+)$", output, re.M).group(1)))
    saved = peaks[0] - peaks[1]
    told = told_of(support.report(tmp_path / "run.mtrace")["devices"][0], "set_to_none")
    assert told or saved <= WORTH * peaks[0]
    for row in told:
        allowed = TOLERANCE * saved + SLACK * peaks[0]
        assert saved <= row["saves_bytes"] + allowed
        assert row["up_to"] or row["saves_bytes"] <= saved + allowed


@pytest.mark.parametrize("model,words", [("gpt", "bfloat16"), ("shifted", "")])
def test_mixed_precision_is_not_advised_to_a_model_of_two_bytes(model, words):
    peak, device = peak_and_report(model, words)
    (precision,) = [row for row in device["levers"] if row["name"] == "mixed_precision"]
    assert not precision["applies"] and "of two bytes already" in precision["reason"]
    assert device["expected"]["bytes_a_parameter"] == 8 and device["expected"]["width_is_certain"]
    if words:
        assert peak - peak_and_report(model, words + " amp")[0] <= WORTH * peak


@functools.cache
def sharded(words):
    """The same of the first of two ranks."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = support.environment(
            preload=True,
            LEVERS=words,
            SIMGPU_DEVICES="2",
            MEMTRACE_OUTPUT=str(folder / "run.%r"),
            MEMTRACE_SUMMARY="file",
        )
        result = support.run([support.PYTHON, PROGRAMS / "sharded.py"], env, cwd=folder)
        peak = re.search(r"^PEAK (\d+)$", result.stdout, re.M)
        assert peak, result.stdout + result.stderr[-2000:]
        device = next(d for d in support.report(folder / "run.0.mtrace")["devices"] if d["device"] == 0)
    return int(peak.group(1)), device


@pytest.mark.parametrize("stage", ["zero1", "zero3"])
def test_sharding_saves_what_is_promised(stage):
    if os.environ.get("MEMTRACE_FULL") != "1":
        pytest.skip("six processes of PyTorch: MEMTRACE_FULL=1")
    peak, device = sharded("")
    saved = peak - sharded(stage)[0]
    (row,) = [row for row in device["levers"] if row["name"] == stage]
    assert row["applies"] and row["up_to"]
    assert saved <= row["saves_bytes"] * (1 + TOLERANCE) and row["saves_bytes"] <= saved * (1 + TOLERANCE)
    told = {r["name"]: r for r in sharded(stage)[1]["levers"]}
    assert not told["zero3"]["applies"] and "in use" in told["zero3"]["reason"]


def test_levers_come_in_order_and_the_useless_are_told_apart():
    _, device = peak_and_report("gpt", "amp")
    levers = device["levers"]
    useful = [row["saves_bytes"] for row in levers if row["applies"]]
    assert useful == sorted(useful, reverse=True) and len(useful) >= 3
    assert [row["applies"] for row in levers] == sorted((row["applies"] for row in levers), reverse=True)
    (precision,) = [row for row in levers if row["name"] == "mixed_precision"]
    assert not precision["applies"] and "in use" in precision["reason"]
    assert device["expected"]["bytes_a_parameter"] == 16
