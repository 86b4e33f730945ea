"""`memtrace whatif` against the truth: the program run again under the other setting.

Each workload of tests/cases/allocator is recorded once, under PyTorch's defaults. From that trace
`whatif` says what another setting reserves; then the program runs under that setting, without
memtrace, and PyTorch's own counters are the truth.
"""

import dataclasses
import functools
import json
import re
import os
import subprocess

import pytest

from support import CASES, PYTHON, TOOL, TORCHES, allocator, environment, memtrace, run

WORKLOADS = CASES / "allocator" / "workloads.py"
FULL = os.environ.get("MEMTRACE_FULL") == "1"
MIB = 1 << 20
AMPLE = "64GiB"
CONTEXT_MIB = 300  # what the simulated GPU's context takes

LIGHT = ["devlog", "torture", "multistream", "mixed", "mempool"]
HEAVY = ["kv_infer", "gpt_fixed", "gpt_var", "gpt_grow", "ckpt"]
NAMES = LIGHT + HEAVY if FULL else LIGHT
PRIVATE = {"mempool"}  # a MemPool: its class is inferred, figures are good to 20 %

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


@dataclasses.dataclass(frozen=True)
class Setting:
    """conf: for `whatif`; in PyTorch, `truth` (the same if None) and the variables of `more`."""

    conf: str = ""
    truth: str = None
    more: tuple = ()
    versions: tuple = tuple(TORCHES)

    @property
    def empties(self):
        return ("WL_EMPTY", "1") in self.more


FRACTION = "garbage_collection_threshold:0.6,per_process_memory_fraction:0.95"
SETTINGS = {
    "default": [Setting()],
    "expandable": [Setting("expandable_segments:True")],
    "split64": [Setting("max_split_size_mb:64")],
    "split21": [Setting("max_split_size_mb:21")],
    "roundup4": [Setting("roundup_power2_divisions:4")],
    "roundup_list": [Setting("roundup_power2_divisions:[1:2,16:8,>:4]")],
    "segment64": [Setting("large_segment_size_mb:64", versions=("2.15",))],
    "gc": [
        Setting(FRACTION, versions=("2.15",)),
        Setting(
            FRACTION,
            truth="garbage_collection_threshold:0.6",
            more=(("WL_FRACTION", "0.95"),),
            versions=("2.8",),
        ),
    ],
    "empty": [Setting(more=(("WL_EMPTY", "1"),))],
}


def setting_of(name, torch):
    return next((s for s in SETTINGS[name] if torch in s.versions), None)


class Server:
    """A process that has imported PyTorch and runs workloads, each in a child."""

    def __init__(self, torch, preload):
        self.process = subprocess.Popen(
            [PYTHON, WORKLOADS, "-"],
            env=environment(torch=torch, preload=preload, MEMTRACE_SUMMARY="file"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, workload, **variables):
        """PyTorch's own account of it."""
        job = {"name": workload, "environment": variables}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        account = json.loads(self.process.stdout.readline())
        assert account["workload"] == workload
        assert self.process.stdout.readline() == "ended\n"
        return account

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="module")
def truth():
    """truth(torch, workload, setting, memory): the account of a run without memtrace."""
    server = functools.cache(lambda torch: Server(torch, preload=False))

    @functools.cache
    def account(torch, workload, setting, memory=AMPLE):
        words = setting.conf if setting.truth is None else setting.truth
        variables = {"SIMGPU_MEMORY": memory, **allocator(words), **dict(setting.more)}
        return server(torch).run(workload, **variables)

    yield account
    for torch in TORCHES:
        server(torch).close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """recorded(torch, workload): its trace, recorded under PyTorch's defaults, or under `conf`."""
    folder = tmp_path_factory.mktemp("whatif")
    server = functools.cache(lambda torch: Server(torch, preload=True))

    @functools.cache
    def record(torch, workload, conf=""):
        trace = folder / f"{torch}.{workload}.{len(conf)}.mtrace"
        # Without readings of the device the context is not known, and --memory is without it.
        variables = {"MEMTRACE_OUTPUT": str(trace), "MEMTRACE_NVML": "off", **allocator(conf)}
        server(torch).run(workload, SIMGPU_MEMORY=AMPLE, **variables)
        return trace

    yield record
    for torch in TORCHES:
        server(torch).close()


@functools.cache
def what_if(trace):
    settings = {s.conf for group in SETTINGS.values() for s in group if trace_knows(trace, s)}
    confs = [word for conf in sorted(settings) for word in ("--conf", conf)]
    return json.loads(memtrace("whatif", "--json", "--empty-cache", *confs, trace))


def trace_knows(trace, setting):
    return any(trace.name.startswith(f"{version}.") for version in setting.versions)


def row_of(told, setting):
    return next(
        row
        for row in told["settings"]
        if row["conf"] == setting.conf and row["empty_cache_each_step"] == setting.empties
    )


COMPARED = {
    "peak_reserved_bytes": "peak_reserved",
    "final_reserved_bytes": "final_reserved",
    "device_allocs": "device_allocs",
}
QUICK_2_8 = ["default", "expandable"]


def matrix():
    for torch in TORCHES:
        for name in SETTINGS:
            if setting_of(name, torch) and (FULL or torch == "2.15" or name in QUICK_2_8):
                yield torch, name


@pytest.mark.parametrize("torch, name", [*matrix()])
def test_prediction_equals_a_run_under_that_setting(torch, name, recorded, truth):
    setting = setting_of(name, torch)
    differences = []
    for workload in NAMES:
        told = row_of(what_if(recorded(torch, workload)), setting)
        account = truth(torch, workload, setting)
        for key, counter in COMPARED.items():
            model, counted = told[key], account[counter]
            allowed = 0.2 * counted if workload in PRIVATE else 0
            if abs(model - counted) > allowed:
                differences.append(f"{workload} {key}: whatif {model}, PyTorch {counted}")
    assert not differences, "\n".join(differences)


# What a run has set already. Of max_split_size, whole segments of any size lie free and are not taken.
SET_ALREADY = [
    "max_split_size_mb:64",
    "max_split_size_mb:32,max_non_split_rounding_mb:64",
    "expandable_segments:True",
    "roundup_power2_divisions:4,max_split_size_mb:128",
]


@pytest.mark.parametrize("conf", SET_ALREADY if FULL else SET_ALREADY[1:2])
@pytest.mark.parametrize("torch", TORCHES)
def test_a_run_with_other_settings_tells_as_much(torch, conf, recorded, truth):
    differences = []
    for workload in ("mixed", "multistream") if FULL else ("mixed",):
        told = what_if(recorded(torch, workload, conf))
        assert not told["doubts"]["private_pools"] and not told["doubts"]["contradictions"]
        assert all(model == counted for model, counted in told["identity"].values())
        for name in ("default", "split64", "expandable", "roundup4"):
            account = truth(torch, workload, setting_of(name, torch))
            row = row_of(told, setting_of(name, torch))
            if any(row[key] != account[counter] for key, counter in COMPARED.items()):
                differences.append(f"{workload} {name}: {row}, PyTorch {account}")
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("torch", TORCHES)
def test_the_run_itself_is_reproduced_and_private_pools_are_told(torch, recorded):
    for workload in NAMES:
        told = what_if(recorded(torch, workload))
        assert told["doubts"]["private_pools"] == (workload in PRIVATE), workload
        assert told["doubts"]["contradictions"] == 0, workload
        for key, (model, counted) in told["identity"].items():
            assert model == counted, f"{workload} {key}"
    text = memtrace("whatif", recorded(torch, "mempool"))
    assert "Private pools" in text
    own = re.search(r"^ +\d+ +(\d+).*<- this run$", text, re.M)
    assert int(own.group(1)) == what_if(recorded(torch, "mempool"))["identity"]["peak_reserved"][1] // MIB  # known, whatever is inferred
    text = memtrace("whatif", recorded(torch, "devlog"))
    assert "Private pools" not in text
    for shown in (text, memtrace("whatif", "--memory", "24GiB", recorded(torch, "devlog"))):
        assert max(map(len, shown.splitlines()[1:])) <= 80  # the first has a path


NEEDS = [
    (workload, name)
    for workload in ("torture", "mixed", "multistream", "kv_infer", "gpt_var")
    for name in ("split64", "default", "expandable", "split21")
]


@pytest.mark.parametrize("workload, name", NEEDS if FULL else NEEDS[:1])
def test_least_memory_is_enough_and_two_mebibytes_less_is_not(workload, name, recorded, truth):
    setting = setting_of(name, "2.15")
    needs = row_of(what_if(recorded("2.15", workload)), setting)["needs_bytes"]
    assert needs % (2 * MIB) == 0
    for missing, fits in ((0, True), (2, False)):
        memory = f"{needs // MIB + CONTEXT_MIB - missing}MiB"
        account = truth("2.15", workload, setting, memory)
        assert (account["oom"] is None) == fits, f"{memory}: {account['oom']}"


def test_memory_limit_names_the_step_of_the_oom(recorded, truth):
    """The run was recorded with plenty; in 700 MiB PyTorch itself says how far it gets."""
    setting = SETTINGS["split64"][0]
    words = ("--conf", setting.conf, "--memory", "700MiB")
    told = json.loads(memtrace("whatif", "--json", *words, recorded("2.15", "torture"), status=1))
    account = truth("2.15", "torture", setting, f"{700 + CONTEXT_MIB}MiB")
    row = row_of(told, setting)
    assert account["oom"]
    assert (row["oom_step"], row["retries"]) == (account["steps"], account["retries"])


@pytest.mark.parametrize("torch", TORCHES)
def test_a_run_near_its_memory_is_reproduced_and_needs_what_one_with_plenty_does(
    torch, recorded, tmp_path
):
    ample = what_if(recorded(torch, "torture"))
    need = row_of(ample, SETTINGS["default"][0])["needs_bytes"]
    trace = tmp_path / f"{torch}.near.mtrace"
    memory = f"{need // MIB + CONTEXT_MIB + 2}MiB"
    more = {"MEMTRACE_OUTPUT": str(trace), "MEMTRACE_NVML": "off", "SIMGPU_MEMORY": memory}
    result = run([PYTHON, WORKLOADS, "torture"], environment(torch=torch, **more))
    account, told = json.loads(result.stdout), what_if(trace)
    assert account["retries"] and account["oom"] is None
    for key in ("peak_reserved", "final_reserved", "device_allocs"):
        assert told["identity"][key] == [account[key], account[key]]
    for name in ("default", "expandable", "split64"):
        setting = setting_of(name, torch)
        near, far = row_of(told, setting), row_of(ample, setting)
        assert near["needs_bytes"] == far["needs_bytes"], name
        assert near["peak_reserved_bytes"] == far["peak_reserved_bytes"], name


SCRIPT = """
import torch
torch.cuda.memory._set_allocator_settings("expandable_segments:True")
def fill(count, size):
    return [torch.empty(size << 20, dtype=torch.uint8, device="cuda") for _ in range(count)]
kept = fill(8, 16)
del kept
kept = fill(4, 32)
torch.cuda.memory._set_allocator_settings("expandable_segments:False")
other = fill(1, 100)
print(torch.cuda.max_memory_reserved(), torch.cuda.memory_stats()["num_device_alloc"])
"""


@pytest.mark.parametrize("torch", TORCHES)
def test_settings_changed_at_run_time_are_replayed(torch, tmp_path):
    result = run(
        [PYTHON, "-W", "ignore", "-c", SCRIPT],
        environment(torch=torch, MEMTRACE_OUTPUT=str(tmp_path / "run")),
    )
    assert result.returncode == 0, result.stderr
    reserved, calls = map(int, result.stdout.split())
    told = json.loads(memtrace("whatif", "--json", tmp_path / "run.mtrace"))
    assert told["identity"]["peak_reserved"] == [reserved, reserved]
    assert told["identity"]["device_allocs"] == [calls, calls]


TRAINING = """
import os, torch
from torch import nn
model = nn.Sequential(nn.Linear(1024, 3000), nn.ReLU(), nn.Linear(3000, 1024)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for index in range(6):
    loss = model(torch.randn(500 * (index + 1), 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if os.environ.get("EMPTY"):
        torch.cuda.empty_cache()
stats = torch.cuda.memory_stats()
print(stats["reserved_bytes.all.peak"], stats["num_device_alloc"], stats["num_device_free"])
os._exit(0)  # the program ends with all that it has
"""


@pytest.mark.parametrize("torch", TORCHES)
def test_without_marks_a_step_ends_with_the_optimizers(torch, tmp_path):
    """empty_cache() after each: as a run that calls it where a program would."""

    def train(**more):
        result = run([PYTHON, "-W", "ignore", "-c", TRAINING], environment(torch=torch, **more))
        assert result.returncode == 0, result.stderr
        return [int(word) for word in result.stdout.split()]

    train(MEMTRACE_OUTPUT=str(tmp_path / "run"))
    reserved, calls, frees = train(EMPTY="1", preload=False)
    assert frees
    told = json.loads(memtrace("whatif", "--json", tmp_path / "run.mtrace"))
    assert (told["steps"], told["steps_from"]) == (6, "optimizer")
    row = row_of(told, SETTINGS["empty"][0])
    assert (row["peak_reserved_bytes"], row["device_allocs"]) == (reserved, calls)


SIZES = """
import torch
MIB, KIB = 1 << 20, 1 << 10
torch.empty(1, device="cuda")
host = torch.empty(8 * MIB, dtype=torch.uint8)
past_aten = torch.cuda.caching_allocator_alloc(8 * MIB + 100)
kept = torch.empty(30 * MIB - 3000, dtype=torch.uint8, device="cuda")
view = kept.as_strided((12 * MIB,), (1,))
past_aten = torch.cuda.caching_allocator_alloc(12 * MIB + 300 * KIB)
past_aten = torch.cuda.caching_allocator_alloc(100)
torch.empty(1100 * KIB, dtype=torch.uint8, device="cuda")
kept.resize_(50 * MIB - 5000)
torch.empty(49 * MIB, dtype=torch.uint8, device="cuda")
"""


@pytest.mark.parametrize("setting", [None, "roundup_power2_divisions:4"])
@pytest.mark.parametrize("torch", TORCHES)
def test_every_request_is_recorded_as_it_was(torch, setting, tmp_path):
    """Also those of libraries, which go past ATen, whatever size ATen computed last for something else."""
    more = {"MEMTRACE_OUTPUT": str(tmp_path / "run"), **allocator(setting)}
    result = run([PYTHON, "-c", SIZES], environment(torch=torch, **more))
    assert result.returncode == 0, result.stderr
    events = map(json.loads, memtrace("dump", "--json", tmp_path / "run.mtrace").splitlines())
    asked = [event["asked"] for event in events if event["what"] == "block_alloc"]
    small = None  # less than the smallest block, and past ATen: of no consequence
    sizes = [8 * MIB + 100, 30 * MIB - 3000, 12 * MIB + 300 * 1024, small, 1100 * 1024]
    assert asked == [4, *sizes, 50 * MIB - 5000, 49 * MIB]


LIMITED = """
import torch
torch.cuda.set_per_process_memory_fraction(0.25)
def buffer(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
kept = [buffer(50) for _ in range(8)]
gone = [buffer(100) for _ in range(14)]
del gone
large = buffer(300)  # only after the cache was given back
kept += [buffer(60) for _ in range(20)]
try:
    kept += [buffer(40) for _ in range(30)]
except torch.OutOfMemoryError:
    pass
stats = torch.cuda.memory_stats()
assert stats["num_alloc_retries"] > 1
print(stats["reserved_bytes.all.peak"], stats["num_device_alloc"])
"""


@pytest.mark.parametrize("torch", TORCHES)
def test_a_limit_that_the_program_set_is_inferred_from_its_oom(torch, tmp_path):
    more = {"MEMTRACE_OUTPUT": str(tmp_path / "run"), "SIMGPU_MEMORY": "8GiB"}
    result = run([PYTHON, "-W", "ignore", "-c", LIMITED], environment(torch=torch, **more))
    assert result.returncode == 0, result.stderr
    reserved, calls = map(int, result.stdout.split())
    told = json.loads(memtrace("whatif", "--json", tmp_path / "run.mtrace"))
    assert told["limit_least_bytes"] <= 2048 * MIB < told["limit_below_bytes"]
    assert told["identity"]["peak_reserved"] == [reserved, reserved]
    assert told["identity"]["device_allocs"] == [calls, calls]
    assert not told["doubts"]["private_pools"]
    assert "inferred from its OOM" in memtrace("whatif", tmp_path / "run.mtrace")


BAD_MEMORY = ["0", "-1", "much", "16EiB"]
BAD_SETTINGS = ["a:b", "max_split_size_mb:20", "expandable_segments:yes", "backend:cudaMallocAsync"]


def test_with_private_pools_a_setting_only_may_fit_within_their_error(recorded):
    """Just above what it needs, and far above."""
    trace = recorded("2.15", "mempool")
    row = what_if(trace)["settings"][0]
    assert not row["recorded"]
    for factor, outcome in ((1.02, "may_fit"), (4, "fits"), (0.98, "may_run_out")):
        memory = f"{int(row['needs_bytes'] * factor) // MIB}MiB"
        words = ("--json", "--conf", row["conf"], "--memory", memory)
        said = json.loads(run_tool(*words, trace).stdout)["settings"]
        assert {r["outcome"] for r in said if not r["recorded"] and r["conf"] == row["conf"]} == {outcome}


def test_wrong_words_end_in_one_line_each(recorded):
    trace = recorded("2.15", "devlog")
    for words in [("--memory", word) for word in BAD_MEMORY] + [
        ("--conf", word) for word in BAD_SETTINGS
    ]:
        result = run_tool(*words, trace)
        assert result.returncode == 2, words
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert not result.stdout


def test_memory_smaller_than_any_request_is_an_oom_and_changes_no_need(recorded):
    trace = recorded("2.15", "devlog")
    ample = json.loads(memtrace("whatif", "--json", trace))["settings"]
    rows = json.loads(memtrace("whatif", "--json", "--memory", "1KiB", trace, status=1))["settings"]
    assert all((row["oom_step"], row["outcome"]) == (0, "runs_out") for row in rows)
    assert all(row["outcome"] is None for row in ample)
    needs = lambda told: {  # noqa: E731
        (row["conf"], row["empty_cache_each_step"]): row["needs_bytes"] for row in told
    }
    assert needs(rows) == needs(ample)


def run_tool(*words):
    return run([TOOL, "whatif", *words], environment(preload=False))


def test_wrong_settings_are_refused_by_name(recorded):
    trace = recorded("2.15", "devlog")
    result = run_tool("--conf", "max_splitt_size_mb:64", trace)
    assert result.returncode == 2
    assert "max_splitt_size_mb" in result.stderr
    assert run_tool("--memory", "much", trace).returncode == 2
