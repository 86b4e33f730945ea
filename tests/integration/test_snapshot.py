"""The snapshot of an OOM opens in PyTorch's own memory_viz, of both versions, with all its views, and tells what
PyTorch itself counted at that moment."""

import contextlib
import importlib.util
import inspect
import io
import json
import os
import pathlib
import pickle
import pickletools

import pytest

from hand_trace import ALLOC, BLOCK, BLOCK_ALLOC, DEVICE, HandTrace
from support import CASES, PYTHON, ROOT, TORCHES, allocator, environment, matrix, memtrace, run
from support import TOOL, traces_in

# With the steps at which PyTorch is asked for too much; at the last the program ends without.
WORKLOADS = {
    "gpt_var": (1, 3, 5),
    "kv_infer": (3, 6, 8),
    "torture": (20, 41),
    "multistream": (4, 9, 15),
    "mempool": (5, 14),
}
SETTINGS = ["backend:native", "expandable_segments:True"]

# What the viewer in JavaScript understands (it takes protocols up to 4).
OPERATIONS = set(
    "PROTO FRAME MARK STOP EMPTY_DICT EMPTY_LIST EMPTY_TUPLE DICT LIST TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS"
    " SETITEM SETITEMS NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE"
    " MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET".split()
)
BLOCK_OOM = 11
SEGMENT = 0x7F0000000000


def memory_viz(torch):
    """PyTorch's module, without PyTorch."""
    packages = TORCHES[torch] or next((ROOT / ".venv" / "lib").glob("python3*/site-packages"))
    path = pathlib.Path(packages) / "torch" / "cuda" / "_memory_viz.py"
    spec = importlib.util.spec_from_file_location("memory_viz_" + torch.replace(".", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(path):
    data = path.read_bytes()
    assert {op.name for op, _, _ in pickletools.genops(data)} <= OPERATIONS
    return pickle.loads(data)


def open_all_views(path, torch):
    """What segsum and trace print; the others must not fail."""
    viz = memory_viz(torch)
    snapshot = load(path)
    flame = {"format_flamegraph": lambda lines: lines}
    assert viz.segments(snapshot, **flame) and viz.memory(snapshot, **flame)
    with contextlib.redirect_stdout(io.StringIO()):
        viz.compare(snapshot["segments"], snapshot["segments"][1:], **flame)
    assert viz.trace_plot(snapshot) and viz.segment_plot(snapshot)
    assert viz.trace_plot(snapshot, plot_segments=True)
    if "filter_freed" in inspect.signature(viz.trace_plot).parameters:  # newer than 2.8
        assert viz.trace_plot(load(path), filter_freed=True)
    return viz.segsum(snapshot) + viz.trace(snapshot)


def check_totals(snapshot, truth):
    """PyTorch's counters and its own snapshot, just after it gave up."""
    segments, counters = snapshot["segments"], truth["counters"]
    assert sum(s["total_size"] for s in segments) == counters["reserved"]
    assert sum(s["allocated_size"] for s in segments) == counters["allocated"]
    requested = sum(s["requested_size"] for s in segments)
    assert counters["requested"] <= requested <= counters["allocated"]
    ours = [
        {
            "address": s["address"],
            "bytes": s["total_size"],
            "live_bytes": s["allocated_size"],
            "blocks": [[b["address"], b["size"]] for b in s["blocks"] if b["state"] == "active_allocated"],
        }
        for s in segments
    ]
    assert ours == truth["segments"]
    for segment in segments:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]


def check_history(snapshot):
    """Goes back from the end as the viewer does: what is undone was there, every block is in a segment."""
    (events,) = snapshot["device_traces"]
    assert events[-1]["action"] == "oom" and events[-1]["category"] == "unknown"
    blocks, pages = {}, {}
    for segment in snapshot["segments"]:
        pages[segment["address"]] = segment["address"] + segment["total_size"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks[block["address"]] = block["size"]
    for event in reversed(events[:-1]):
        start, end = event["addr"], event["addr"] + event["size"]
        action = event["action"]
        if action == "alloc":
            assert blocks.pop(start) == event["size"]
        elif action == "free_completed":
            assert start not in blocks and any(a <= start and end <= b for a, b in pages.items())
            blocks[start] = event["size"]
        elif action in ("segment_free", "segment_unmap"):
            join(pages, start, end)
        elif action in ("segment_alloc", "segment_map"):
            first = next(a for a, b in pages.items() if a <= start and end <= b)
            last = pages.pop(first)
            pages.update({a: b for a, b in ((first, start), (end, last)) if a < b})
    return blocks, pages


def join(pages, start, end):
    assert not any(a < end and start < b for a, b in pages.items())
    for a, b in list(pages.items()):
        if b == start or a == end:
            del pages[a]
            start, end = min(a, start), max(b, end)
    pages[start] = end


@pytest.fixture(scope="module")
def one_run(library, tool, simgpu, tmp_path_factory):
    return run_segments("gpt_var", "2.15", "backend:native", tmp_path_factory.mktemp("snapshot"))


def run_segments(workload, torch, setting, folder):
    """The trace, and what PyTorch told at each of its OOMs."""
    env = environment(
        torch=torch,
        MEMTRACE_OUTPUT=str(folder / "run.mtrace"),
        MEMTRACE_SUMMARY="file",
        CASE_RECORD=str(folder),
        **allocator(setting),
    )
    result = run([PYTHON, CASES / "segments.py", workload, *WORKLOADS[workload]], env, cwd=folder)
    assert result.returncode == 0, result.stderr[-2000:]
    (trace,) = traces_in(folder)
    return trace, json.loads((folder / "segments.json").read_text())[:-1]


@pytest.mark.parametrize("workload, torch, setting", matrix(list(WORKLOADS), list(TORCHES), SETTINGS))
def test_it_opens_in_memory_viz_and_equals_pytorch(library, tool, simgpu, workload, torch, setting, tmp_path):
    trace, truths = run_segments(workload, torch, setting, tmp_path)
    for number, truth in enumerate(truths, 1):
        assert not truth["pending_bytes"]
        live = trace.with_suffix(f".oom{number}.pickle")
        whole = tmp_path / f"whole{number}.pickle"
        memtrace("oom", trace, "--pickle", whole, "--oom", number)
        for path in (live, whole):
            snapshot = load(path)
            check_totals(snapshot, truth)
            blocks, pages = check_history(snapshot)
            assert not blocks  # nothing was there before the first event
            assert path is live or not pages
            for version in TORCHES:
                words = open_all_views(path, version)
                assert "raise OutOfMemoryError # 1.0TiB requested" in words
        text = trace.with_suffix(f".oom{number}.txt").read_text()
        assert f"Snapshot: {live.name} (opens in PyTorch's memory_viz)\n" in text


def test_categories_and_lines_are_in_it(one_run):
    trace, _ = one_run
    snapshot = load(trace.with_suffix(".oom1.pickle"))
    known = {"parameters", "optimizer_state", "unknown"}
    assert known <= {event["category"] for event in snapshot["device_traces"][0]}
    blocks = [b for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
    state = [b for b in blocks if b["category"] == "optimizer_state"]
    assert state
    for block in state:
        assert any(f["filename"].endswith("adam.py") and f["line"] for f in block["frames"])


def hand_snapshot(folder, file, *blocks):
    """Of a trace with one segment, blocks of these (offset, bytes) handed out in it, and an OOM."""
    trace = HandTrace()
    trace.thread(1, "main")
    trace.device(0, "card", 1 << 30)
    stack = trace.stack(trace.frame(file, 3, "f"), owner=trace.module("/x/libc10_cuda.so"))
    trace.event(ALLOC, DEVICE, SEGMENT, 2 << 20, stack)
    for offset, size in blocks:
        trace.event(BLOCK_ALLOC, BLOCK, SEGMENT + offset, size, stack)
    trace.event(BLOCK_OOM, BLOCK, 0, 1 << 40, stack)
    (folder / "hand.mtrace").write_bytes(trace.bytes())
    memtrace("oom", folder / "hand.mtrace", "--pickle", folder / "hand.pickle")
    return load(folder / "hand.pickle")


def test_the_name_of_a_file_may_be_any_bytes(tool, tmp_path):
    snapshot = hand_snapshot(tmp_path, b"/x/\xff\x00\n.py", (0, 512))
    (segment,) = snapshot["segments"]
    assert [b["size"] for b in segment["blocks"]] == [512, (2 << 20) - 512]
    assert "\\xff" in segment["frames"][0]["filename"]


def test_events_that_cannot_have_led_to_it_are_left_out(tool, tmp_path):
    """The free of the first block at an address was lost: what came before it is of no use."""
    snapshot = hand_snapshot(tmp_path, "/x/a.py", (0, 512), (4096, 512), (4096, 1024), (8192, 512))
    (events,) = snapshot["device_traces"]
    assert [(e["action"], e.get("addr")) for e in events] == [
        ("alloc", SEGMENT + 4096),
        ("alloc", SEGMENT + 8192),
        ("oom", None),
    ]
    blocks, pages = check_history(snapshot)
    assert blocks == {SEGMENT: 512} and pages == {SEGMENT: SEGMENT + (2 << 20)}


def test_a_name_that_is_taken_costs_one_line(library, tool, simgpu, tmp_path):
    taken = tmp_path / "run.oom1.pickle"
    taken.write_text("precious")
    env = environment(MEMTRACE_OUTPUT=str(tmp_path / "run.mtrace"))
    program = "import torch; torch.empty(1 << 40, dtype=torch.uint8, device='cuda')"
    result = run([PYTHON, "-c", program], env, cwd=tmp_path)
    assert "torch.OutOfMemoryError" in result.stderr
    (line,) = [line for line in result.stderr.splitlines() if "cannot write" in line]
    assert "run.oom1.pickle" in line and taken.read_text() == "precious"
    text = (tmp_path / "run.oom1.txt").read_text()
    assert "ran out of memory" in text and "Snapshot" not in text + result.stderr


def refuse(status, *arguments):
    """The one line that is said."""
    result = run([TOOL, "oom", *arguments], environment(preload=False))
    assert result.returncode == status, result.stderr
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_without_an_oom_one_line_says_so(tool, tmp_path):
    trace = HandTrace()
    trace.thread(1, "main")
    (tmp_path / "hand.mtrace").write_bytes(trace.bytes())
    out = tmp_path / "x.pickle"
    said = refuse(1, tmp_path / "hand.mtrace", "--pickle", out)
    assert "memory did not run out" in said and not out.exists()


def test_what_is_no_trace_costs_one_line(tool, tmp_path):
    out = tmp_path / "x.pickle"
    for name, content in (("empty.mtrace", b""), ("noise.mtrace", os.urandom(9000))):
        (tmp_path / name).write_bytes(content)
        assert name in refuse(3, tmp_path / name, "--pickle", out) and not out.exists()


def test_an_oom_that_is_not_there_and_a_full_disk_cost_one_line(one_run, tmp_path):
    trace, _ = one_run
    assert "the last OOM that is kept is number 2" in refuse(1, trace, "--pickle", tmp_path / "x", "--oom", "9")
    assert "cannot write /dev/full" in refuse(3, trace, "--pickle", "/dev/full")
    assert "--oom" in refuse(2, trace, "--oom", "0", "--pickle", tmp_path / "x")


@pytest.mark.parametrize("words", [("oom", "--pickle"), ("flame", "--output")])
def test_a_file_that_cannot_be_written_to_its_end_has_no_name(one_run, tmp_path, words):
    """Half of one might pass as all of it. What is there already is written in place."""
    trace, _ = one_run
    out, there, link = (tmp_path / name for name in ("out", "there", "link"))
    verb, option = words
    cut = 'ulimit -f 0; exec "$0" "$@"'
    run(["sh", "-c", cut, TOOL, verb, trace, option, out], environment(preload=False))
    assert not os.listdir(tmp_path)
    memtrace(verb, trace, option, out)
    there.write_text("before")
    there.chmod(0o640)
    link.hardlink_to(there)
    memtrace(verb, trace, option, there)
    assert link.read_bytes() == out.read_bytes() and there.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "out", "there"]
