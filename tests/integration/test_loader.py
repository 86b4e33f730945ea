"""Libraries come and go, are opened in all ways, and other interposers stand before and behind us:
what is found is what would be found without us, and what can be seen is seen."""

import os
import re
import shutil
import sys
import textwrap

import pytest

import support
import traced

pytestmark = pytest.mark.usefixtures("library", "tool")

FAST = traced.FAST / "libcuda.so.1"
THROWING = support.PROGRAMS / "throwing" / "libcuda.so.1"
NEXT = support.PROGRAMS / "next" / "libnext.so"
DLSYMS = support.PROGRAMS / "dlsyms" / "libdlsyms.so"
MALLOCS = support.PROGRAMS / "mallocs" / "libmallocs.so"
CALLERS = support.PROGRAMS / "callers" / "libcallers.so"


def preloads(*libraries):
    return {"LD_PRELOAD": ":".join(map(str, libraries))}


def test_a_driver_that_comes_back_elsewhere_is_traced_again(tmp_path):
    """Its first place is taken when it is opened again."""
    plain = traced.run(tmp_path / "plain", "guest", "reopen", cuda=THROWING.parent, preload=False)
    run = traced.run(tmp_path / "traced", "guest", "reopen", cuda=THROWING.parent)
    assert (run.status, run.stdout) == (plain.status, plain.stdout) == (0, "closed, gone\n" * 3)
    assert traced.figures(run.report) == (3, 3, 0)


def test_a_handle_is_answered_from_its_own_library(tmp_path):
    plain = traced.run(tmp_path / "plain", "guest", "two", FAST, THROWING, preload=False)
    run = traced.run(tmp_path / "traced", "guest", "two", FAST, THROWING)
    assert (run.status, run.stdout) == (plain.status, plain.stdout) == (0, "0x7a\n0x70\n")
    # Of two drivers at once the first is seen; that there is another is told.
    assert traced.figures(run.report)[0] == 1
    assert [blind["what"] for blind in run.report["blind"]] == ["unmatched_lookup"]


@pytest.mark.parametrize("is_first", [True, False])
def test_who_asks_for_the_next_definition_stays_the_asker(tmp_path, is_first):
    order = (CALLERS, support.LIBRARY) if is_first else (support.LIBRARY, CALLERS)
    run = traced.run(tmp_path, "guest", "parent", **preloads(*order))
    assert (run.status, run.stdout) == (0, "an answer\n")


@pytest.mark.parametrize("is_first", [True, False])
def test_another_interposer_of_dlsym_is_asked_and_asks_us(tmp_path, is_first):
    order = (DLSYMS, support.LIBRARY) if is_first else (support.LIBRARY, DLSYMS)
    run = traced.run(tmp_path, "guest", "errno", **preloads(*order))
    plain = traced.run(tmp_path / "plain", "guest", "errno", LD_PRELOAD=str(DLSYMS), preload=False)
    assert (run.status, run.stdout) == (plain.status, plain.stdout)
    assert traced.figures(run.report) == (3, 3, 0)
    look_ups = [line for line in plain.stderr.splitlines() if line.startswith("dlsyms")]
    assert look_ups[0] in run.stderr


@pytest.mark.parametrize("is_first", [True, False])
def test_a_malloc_that_looks_for_the_next_one_is_answered(tmp_path, is_first):
    """It allocates while it looks, and is needed before anything of ours can be ready."""
    order = (MALLOCS, support.LIBRARY) if is_first else (support.LIBRARY, MALLOCS)
    run = traced.run(tmp_path, "leave", "exit", **preloads(*order))
    assert (run.status, run.stdout) == (3, "done\n"), run.stderr
    assert traced.figures(run.report) == (3, 1, 4000)
    assert "mallocs: 3 calls" in run.stderr


@pytest.mark.parametrize("stacks", ["off", "python,native"])
def test_a_call_that_is_recorded_allocates_nothing(tmp_path, stacks):
    """But for a thread's first one: malloc may wait for a lock that another thread holds."""
    run = traced.run(tmp_path, "threads", 3, 20_000, MEMTRACE_STACKS=stacks, **preloads(MALLOCS, support.LIBRARY))
    assert run.status == 0, run.stderr
    calls, allocations = re.search(r"mallocs: (\d+) calls, (\d+) allocations", run.stderr).groups()
    assert int(calls) == traced.figures(run.report)[0] > 10_000
    assert int(allocations) == 0


def test_preloads_before_and_behind_us_are_all_called(tmp_path):
    behind = tmp_path / "libbehind.so"
    shutil.copy(NEXT, behind)
    run = traced.run(tmp_path, "leave", "return", **preloads(NEXT, support.LIBRARY, behind))
    assert run.status == 0, run.stderr
    sizes = [event["bytes"] for event in support.dump(run.trace) if event["what"] == "alloc"]
    assert sizes == [1064, 2064, 3064]
    assert run.stderr.count("next: 3 calls\n") == 2


def test_binding_all_symbols_at_once_changes_nothing(tmp_path):
    run = traced.run(tmp_path, "leave", "exit", LD_BIND_NOW="1")
    assert (run.status, traced.figures(run.report)) == (3, (3, 1, 4000))


def test_a_driver_that_was_opened_before_us_is_found(tmp_path):
    """The library itself is opened by dlopen, as an injection is."""
    run = traced.run(tmp_path, "guest", "through", support.LIBRARY, FAST, preload=False,
                     MEMTRACE_OUTPUT=str(tmp_path / "run"))
    assert run.status == 0, run.stdout
    assert traced.figures(run.report) == (1, 0, 1000)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a file set-user-ID")
def test_with_another_user_s_rights_nothing_is_read_or_written(tmp_path):
    """The same with the set-user-ID bit: the environment is the caller's, the rights are not."""
    program = tmp_path / "guest"
    shutil.copy(support.PROGRAMS / "guest", program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    tmp_path.chmod(0o777)
    run = traced.run(tmp_path, program, "through", support.LIBRARY, FAST, preload=False,
                     MEMTRACE_OUTPUT=str(tmp_path / "run"), MEMTRACE_STACKS="unknown")
    assert (run.status, run.stdout, run.stderr) == (0, "", "")
    assert not run.traces


def test_missing_places_for_an_answer_are_the_driver_s_matter(simgpu, tmp_path):
    plain = traced.run(tmp_path / "plain", "guest", "null", cuda=simgpu, preload=False)
    run = traced.run(tmp_path / "traced", "guest", "null", cuda=simgpu)
    assert plain.status == 0 and (run.status, run.stdout) == (plain.status, plain.stdout)


# What a runtime asks for before anything is initialised, and what nobody should ask.
ODD_LOOK_UPS = """
    import ctypes
    cuda = ctypes.CDLL("libcuda.so.1")
    NAMES = [b"", b"cu", b"cuda", b"cuMemAlloc", b"cuMemAlloc_v2", b"cuMemAlloc_v9", b"cuMemAllocAsync",
             b"cuGetProcAddress", b"cuCtxCreate", b"cuNoSuchThing", b"cudnnCreate", b"x" * 5000]
    TABLE = bytes.fromhex("f8cff95121468b4eb9e2fb469e7c0dd9")
    def look_up(name, version, flags):
        found, status = ctypes.c_void_p(1), ctypes.c_int(77)
        question = name, ctypes.byref(found), version, ctypes.c_uint64(flags)
        for ask, *rest in (cuda.cuGetProcAddress_v2, ctypes.byref(status)), (cuda.cuGetProcAddress_v2, None), \\
                          (cuda.cuGetProcAddress,):
            found.value = 1
            print(name[:20], version, flags, ask(*question, *rest), found.value not in (None, 1), status.value)
    def ask_all():
        for name in NAMES:
            for version in -1, 0, 2000, 3020, 11020, 12000, 13000, 99999:
                for flags in 0, 1, 2, 3, 1 << 40:
                    look_up(name, version, flags)
            print(name[:20], cuda.cuGetProcAddress_v2(name, None, 12000, ctypes.c_uint64(0), None))
        table = ctypes.c_void_p()
        print(cuda.cuGetExportTable(ctypes.byref(table), TABLE), table.value)
    ask_all()
    print(cuda.cuInit(0))
    ask_all()
"""


def test_odd_look_ups_are_answered_as_without_us(simgpu, tmp_path):
    """No name, unknown ones, any version and flag, missing places, the hidden tables, before and after cuInit."""
    program = (sys.executable, "-c", textwrap.dedent(ODD_LOOK_UPS))
    plain = traced.run(tmp_path / "plain", *program, cuda=simgpu, preload=False)
    run = traced.run(tmp_path / "traced", *program, cuda=simgpu)
    assert plain.status == 0 and len(plain.stdout.splitlines()) > 2 * 12 * 8 * 5 * 3, plain.stderr
    assert (run.status, run.stdout, run.stderr) == (0, plain.stdout, plain.stderr)
    assert not run.traces
