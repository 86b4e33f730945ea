"""A workload of allocator/workloads.py that asks, at up to four of its steps, for more than any card has.

    python segments.py NAME STEP [STEP ...]

PyTorch empties its cache then and gives up, so that a tracer has a map of the segments at that moment; the
program writes PyTorch's own into $CASE_RECORD/segments.json: of each moment what it counts, and every
segment with its blocks. At the last one it ends there, with all that is live, and the cache as it was.
"""

import os
import random
import sys

import torch
from common import write_json

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "allocator"))
import workloads  # noqa: E402

name, moments = sys.argv[1], [int(word) for word in sys.argv[2:]]
told = []
count = 0


def tell():
    stats, snapshot = torch.cuda.memory_stats(), torch.cuda.memory_snapshot()
    segments = [
        {
            "address": segment["address"],
            "bytes": segment["total_size"],
            "live_bytes": segment["allocated_size"],
            "blocks": [
                [block["address"], block["size"]]
                for block in segment["blocks"]
                if block["state"] == "active_allocated"
            ],
        }
        for segment in snapshot
    ]
    told.append(
        {
            "counters": {
                key: stats[f"{key}_bytes.all.current"]
                for key in ("inactive_split", "reserved", "allocated", "requested")
            },
            "pending_bytes": sum(
                block["size"]
                for segment in snapshot
                for block in segment["blocks"]
                if block["state"] == "active_pending_free"
            ),
            "segments": sorted(segments, key=lambda segment: segment["address"]),
        }
    )


def step():
    global count
    count += 1
    if count not in moments:
        return
    if count == moments[-1]:
        tell()
        write_json(os.path.join(os.environ["CASE_RECORD"], "segments.json"), told)
        os._exit(0)
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        tell()


random.seed(7)
torch.backends.cudnn.enabled = False
workloads.step = step
workloads.ALL[name]()
