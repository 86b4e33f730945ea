"""Where nothing is allocated, nobody notices that the library is there; and the library itself is
what a guest may be: it needs libc alone, exports its table and nothing else."""

import re
import subprocess
import sys

import pytest

import support
import traced

TLS_BYTES_MAX = 256  # more does not fit when the library is opened by dlopen

# Every symbol that the library takes from the process, and why it may.
LIBC = {
    "memory and strings": """
        calloc free malloc memchr memcmp memcpy memmove memset strcasecmp strchr strcmp strcpy
        strcspn strlen strncasecmp strncmp strncpy strnlen strrchr strspn strstr
        strtok_r strtoul strtoull""",
    "mapped memory, of the front and the tables": "madvise mincore mmap mremap munmap",
    "files of ours": """
        close fallocate fcntl fstat fstatfs ftruncate lstat open posix_fallocate pread pwrite read
        readlink statfs unlink write""",
    "reading NVML, and a fork meanwhile": "__register_atfork",
    "what the process is": "getauxval getcwd getenv gethostname getpid stat syscall",
    "the status that exit was called with": "on_exit",
    "time": "clock_gettime nanosleep time",
    "the end of CUPTI's part; a child has none": "__cxa_atexit",
    "the dump thread": """
        prctl pthread_attr_destroy pthread_attr_init pthread_attr_setdetachstate
        pthread_attr_setstacksize pthread_create sched_getaffinity sched_setaffinity sched_yield""",
    "a leaf lock of ours": """
        pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock""",
    "SIGPIPE and SIGXFSZ around our writes": """
        poll pthread_sigmask sigaddset sigdelset sigemptyset sigfillset sigismember sigpending
        sigtimedwait""",
    "compiler and loader": """
        __cxa_finalize __errno_location __gmon_start__ __stack_chk_fail _ITM_deregisterTMCloneTable
        _ITM_registerTMCloneTable _dl_find_object _r_debug __tls_get_addr""",
    "the objects that are loaded": "dl_iterate_phdr",
    "a start on a stack of its own, that nothing leaves half-way": """
        access getcontext makecontext pthread_setcancelstate swapcontext""",
}

QUIET_PROGRAMS = [
    ["bash", "-c", "true"],
    ["bash", "-c", "echo hello | cat; exit 3"],
    ["gcc", "--version"],
    ["ls", "/"],
    [sys.executable, "-c", "1"],
    [sys.executable, "-c", "import os; print(os.listdir('/proc/self/task') == [str(os.getpid())])"],
]


def tool_output(*command):
    result = support.run(command, support.environment(preload=False))
    assert result.returncode == 0, result.stderr
    return result.stdout


# ---- programs without CUDA --------------------------------------------------------------------


@pytest.mark.parametrize("command", QUIET_PROGRAMS, ids=lambda command: " ".join(command[:2])[-30:])
def test_a_program_without_cuda_is_left_alone(library, tmp_path, command):
    """Nothing printed, no file, no thread; the trace would go to the working folder."""
    plain = support.run(command, support.environment(preload=False), cwd=tmp_path)
    quiet = support.run(command, support.environment(), cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )
    assert not list(tmp_path.iterdir())


def test_a_compiler_under_us_writes_the_same_object(library, tmp_path):
    (tmp_path / "a.c").write_text("int answer(void) { return 42; }\n")
    objects = []
    for name, preload in (("plain.o", False), ("quiet.o", True)):
        command = ["gcc", "-c", "-o", tmp_path / name, "a.c"]
        result = support.run(command, support.environment(preload=preload), cwd=tmp_path)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        objects.append((tmp_path / name).read_bytes())
    assert objects[0] == objects[1]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_cuda_program_that_only_asks_makes_no_file(library, simgpu, tmp_path):
    run = traced.run(tmp_path, "guest", "asks", cuda=support.SIMGPU)
    assert run.status == 0 and run.stderr == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("setting", ["off", "0"])
def test_switched_off_it_is_silent(library, tmp_path, setting):
    run = traced.run(tmp_path, "leave", "exit", MEMTRACE=setting)
    assert (run.status, run.stdout, run.stderr) == (3, "done\n", "")
    assert not list(tmp_path.iterdir())


def test_more_is_said_to_those_who_ask(library, tool, tmp_path):
    inner = support.PROGRAMS / "runpath" / "inner" / "libinner.so"
    run = traced.run(
        tmp_path, "guest", "open", inner, "deepbind", MEMTRACE_LOG="on", MEMTRACE_SUMMARY="file"
    )
    assert (run.status, run.stdout) == (0, "")
    lines = run.stderr.splitlines()
    assert all(line.startswith("memtrace: ") for line in lines)
    assert any("run.mtrace" in line for line in lines[:2]) and "events, closed" in lines[-1]
    assert sum("libinner.so was loaded with RTLD_DEEPBIND" in line for line in lines) == 1


# ---- the library ------------------------------------------------------------------------------


def test_it_needs_libc_alone(library):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", tool_output("readelf", "-dW", library))
    assert needed == ["libc.so.6"]


def test_its_code_is_not_relocated(library):
    assert "TEXTREL" not in tool_output("readelf", "-dW", library)


def test_its_stack_is_not_executable(library):
    (flags,) = re.findall(r"GNU_STACK .* (\S+)\s+0x", tool_output("readelf", "-lW", library))
    assert flags == "RW"


def test_its_thread_local_memory_is_small(library):
    segments = tool_output("readelf", "-lW", library)
    found = re.findall(r"^  TLS +(?:0x\w+ +){4}0x(\w+)", segments, re.M)
    assert sum(int(size, 16) for size in found) <= TLS_BYTES_MAX


def exported_names(library):
    listing = tool_output("nm", "-D", "--defined-only", "--with-symbol-versions", library)
    symbols = [line.split()[1:] for line in listing.splitlines()]
    return {name for kind, name in symbols if kind != "A"}  # A: the version nodes themselves


def test_it_exports_the_rows_of_its_table_and_nothing_else(library):
    """Runtime functions only under their version, and never as its default (@@)."""
    wanted = {
        f"{row.symbol}@{row.node}" if row.node else row.symbol for row in traced.hook_rows()
    }
    assert len(wanted) == len(traced.hook_rows())
    assert exported_names(library) == wanted


def test_every_symbol_that_it_takes_from_the_process_is_accounted_for(library):
    lines = tool_output("nm", "-D", "--undefined-only", library).splitlines()
    taken = {line.split()[-1].partition("@")[0] for line in lines}
    allowed = set(" ".join(LIBC.values()).split())
    assert taken <= allowed, taken - allowed


def test_it_can_be_opened_by_dlopen(library, tmp_path):
    run = traced.run(tmp_path, "guest", "open", library, "now", preload=False)
    assert (run.status, run.stdout) == (0, "")


def test_it_can_be_opened_again_where_it_is_preloaded(library, tool, tmp_path):
    run = traced.run(tmp_path, "guest", "open", library, "now")
    assert (run.status, run.stdout) == (0, "")
    assert traced.figures(run.report) == (1, 0, 1000)


def test_it_loads_beside_other_users_of_static_tls(library, tmp_path):
    """An interpreter with large extensions has little room left; opened last, we must still fit."""
    script = f"import ctypes, decimal, ssl; ctypes.CDLL({str(library)!r})"
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=support.environment(preload=False), cwd=tmp_path, capture_output=True, text=True,
    )
    assert result.returncode == 0, result.stderr
