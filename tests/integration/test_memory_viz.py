"""The snapshot of an OOM in PyTorch's own viewer, MemoryViz.js, under node: all its views without an exception, and
the totals that PyTorch counted. scripts/fetch-memory-viz.sh fetches the viewer; without it these tests skip."""

import json
import os
import pathlib
import re
import shutil

import pytest

import pythons
import test_snapshot
from support import TORCHES, matrix, memtrace, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

DRIVER = pathlib.Path(__file__).with_name("memory_viz.mjs")
VIEWS = {
    "Active Memory Timeline",
    "Active Cached Segment Timeline",
    "Allocator State History",
    "Allocator Settings",
}
# Those of few events: a page of a hundred thousand shapes takes minutes.
WORKLOADS = ["gpt_var", "torture"]


@pytest.fixture(scope="module")
def viewer():
    """The folder with MemoryViz.js and the modules that it needs."""
    place = pythons.cache() / "memory-viz"
    if not (place / "MemoryViz.js").exists():
        pytest.skip("PyTorch's viewer is not fetched: scripts/fetch-memory-viz.sh")
    return place.absolute()


def look(viewer, *snapshots):
    """What the views show of each snapshot: {view: facts}."""
    node = shutil.which("node") or viewer / "root/usr/bin/node"
    env = dict(os.environ, NODE_PATH=str(viewer / "root/usr/share/nodejs"))
    if not shutil.which("node"):
        env["LD_LIBRARY_PATH"] = str(viewer / "root/usr/lib/x86_64-linux-gnu")
    result = run([node, DRIVER, viewer / "MemoryViz.js", *snapshots], env)
    assert result.returncode == 0, result.stderr[-3000:]
    shown = {}
    for line in result.stdout.splitlines():
        facts = json.loads(line)
        shown.setdefault(facts["snapshot"], {})[facts["view"]] = facts
    return [shown[str(path)] for path in snapshots]


def freed_last(snapshot):
    """The size of the block that the last event took back, if it did: if it lay on top, its shape ends there like those that live."""
    (events,) = snapshot["device_traces"]
    last = [e for e in events if e["action"] in ("alloc", "free_completed")][-1]
    return [last["size"]] if last["action"] == "free_completed" else []


def check(views, path):
    assert set(views) == VIEWS
    assert not [views[view]["errors"] for view in VIEWS if views[view]["errors"]]
    snapshot = test_snapshot.load(path)
    segments = snapshot["segments"]
    blocks = [b for s in segments for b in s["blocks"] if b["state"] == "active_allocated"]
    requested = sum(block["requested_size"] for block in blocks)
    told = views["Allocator State History"]["told"]
    allocated, reserved = map(int, re.findall(r"\((\d+) bytes\)", told)[:2])
    assert (allocated, reserved) == (requested, sum(s["total_size"] for s in segments))
    assert "OOM (requested 1.0TiB" in told
    timeline = views["Active Memory Timeline"]
    freed = freed_last(snapshot)
    more = timeline["blocks"] - len(blocks)
    assert 0 <= more <= len(freed)
    live = timeline["live"] - sum(freed[:more])
    assert requested <= live <= sum(block["size"] for block in blocks)
    (events,) = snapshot["device_traces"]
    assert {event["category"] for event in events if event["action"] == "oom"} <= set(timeline["legend"])
    assert {block["category"] for block in blocks} <= set(timeline["legend"])
    assert "expandable_segments" in views["Allocator Settings"]["told"]


@pytest.mark.parametrize(
    "workload, torch, setting", matrix(WORKLOADS, list(TORCHES), test_snapshot.SETTINGS)
)
def test_it_opens_in_the_viewer(viewer, workload, torch, setting, tmp_path):
    trace, truths = test_snapshot.run_segments(workload, torch, setting, tmp_path)
    paths = []
    for number, _ in enumerate(truths, 1):
        whole = tmp_path / f"whole{number}.pickle"
        memtrace("oom", trace, "--pickle", whole, "--oom", number)
        paths += [trace.with_suffix(f".oom{number}.pickle"), whole]
    for path, views in zip(paths, look(viewer, *paths)):
        check(views, path)
