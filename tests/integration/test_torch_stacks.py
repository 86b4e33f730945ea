"""Python frames of real training, against those that PyTorch's own recorder keeps for each event."""

import json

import pytest

from support import TORCHES, dump, run_case

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def recorded_by_pytorch(folder):
    path = next(folder.glob("*/truth/recorded_stacks.stacks.json"))
    kinds = {"alloc": "block_alloc", "free_requested": "block_free"}
    return [
        (kinds[action], address, [f"{file}:{line}" for file, line, _ in frames], frames)
        for action, address, frames in json.loads(path.read_text())
    ]


def without_function(frame):
    return frame.rsplit(" ", 1)[0]


@pytest.mark.parametrize("torch", TORCHES)
def test_python_frames_equal_those_of_pytorchs_recorder(torch, tmp_path):
    run = run_case("recorded_stacks", tmp_path, torch)
    theirs = recorded_by_pytorch(tmp_path)
    events = [e for e in dump(run.trace, "--stacks") if e["what"] in ("block_alloc", "block_free")]
    assert len(events) >= len(theirs) > 1500
    for index, (event, (what, address, lines, frames)) in enumerate(zip(events, theirs)):
        where = f"block event {index}, seq {event['seq']}"
        assert (event["what"], event["addr"]) == (what, address), where
        assert [without_function(frame) for frame in event["python"]] == lines, where
        ours = [frame.rsplit(" ", 1)[1].rsplit(".", 1)[-1] for frame in event["python"]]
        assert ours == [name for _, _, name in frames], where
