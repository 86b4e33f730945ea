"""Python's own ways to have processes: multiprocessing by fork, forkserver and spawn, and the workers
of a DataLoader. Each process that allocates has a whole trace, the others have none, and the
program prints what it prints without us."""

import os
import textwrap

import pytest

import support
import traced

pytestmark = pytest.mark.usefixtures("library", "tool")

METHODS = ["fork", "forkserver", "spawn"]
FULL = os.environ.get("MEMTRACE_FULL") == "1"

POOL = """
    import ctypes, multiprocessing, os, sys

    def take(size):
        cuda = ctypes.CDLL("libcuda.so.1")
        address = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
        return address.value

    def work(index, results):
        take(5000)
        take(index)
        results.put(os.getpid())

    def be_idle(index):
        sys.exit(index)

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        take(1000)
        results = context.Queue()
        workers = [context.Process(target=work, args=(512 * i, results)) for i in (1, 2, 3)]
        workers += [context.Process(target=be_idle, args=(i,)) for i in (4, 5)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        take(2000)
        print([worker.exitcode for worker in workers])
        print(sorted(results.get() for _ in range(3)) == sorted(w.pid for w in workers[:3]))
"""


@pytest.mark.parametrize("method", METHODS)
def test_children_of_multiprocessing_that_allocate_have_a_trace_each(tmp_path, method):
    script = tmp_path / "pool.py"
    script.write_text(textwrap.dedent(POOL))
    outputs = []
    for preload in (False, True):
        run = traced.run(
            tmp_path / str(preload), support.PYTHON, script, method, preload=preload,
            MEMTRACE_SUMMARY="file",
        )
        outputs.append((run.status, run.stdout, run.stderr))
    assert outputs[0] == outputs[1] == (0, "[0, 0, 0, 4, 5]\nTrue\n", "")
    reports = [support.report(trace) for trace in run.traces]
    assert all(r["trace"]["complete"] and r["program"]["ended"] != "unknown" for r in reports)
    figures = sorted(traced.figures(report) for report in reports)
    assert figures == [(2, 0, 3000), (2, 0, 5512), (2, 0, 6024), (2, 0, 6536)]


LOADER = """
    import sys
    import torch

    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 48

        def __getitem__(self, index):
            return torch.full((1024,), float(index)), index

    if __name__ == "__main__":
        layer = torch.nn.Linear(1024, 8).cuda()
        sums = 0
        loader = torch.utils.data.DataLoader(
            Numbers(), 8, num_workers=2, multiprocessing_context=sys.argv[1], pin_memory=True
        )
        for rows, indices in loader:
            layer(rows.cuda()).sum().backward()
            sums += int(indices.sum()) + int(rows.sum())
        stats = torch.cuda.memory_stats()
        print(sums)
        for name in sorted(stats):
            if name.endswith(("all.peak", "all.allocated", "all.current")) and "pinned" not in name:
                print(name, stats[name])
"""


@pytest.mark.parametrize("method", METHODS)
def test_workers_of_a_data_loader_leave_account_and_output_as_they_are(simgpu, tmp_path, method):
    script = tmp_path / "loader.py"
    script.write_text(textwrap.dedent(LOADER))
    outputs = []
    for preload in (False, True) if method == "fork" or FULL else (True,):
        run = traced.run(
            tmp_path / str(preload), support.PYTHON, script, method, cuda=simgpu, preload=preload,
            MEMTRACE_SUMMARY="file",
        )
        assert run.status == 0, run.stderr
        outputs.append(run.stdout)
    assert outputs[0] == outputs[-1] and len(outputs[0].splitlines()) > 20
    stats = dict(line.split() for line in outputs[-1].splitlines()[1:])
    reported = support.report(run.trace)  # of the one process that used the GPU
    assert reported["trace"]["complete"] is True
    (device,) = [d for d in reported["devices"] if d["pytorch"]]
    allocated = device["pytorch"]["allocated"]
    assert allocated["peak_bytes"] == int(stats["allocated_bytes.all.peak"])
    assert allocated["allocations"] == int(stats["allocation.all.allocated"])
