"""C++ exceptions through hooked calls: caught as without us, by the same unwinder, and nobody is deaf after."""

import shutil
import signal
import subprocess

import pytest

import support
import traced

pytestmark = [
    pytest.mark.usefixtures("library", "tool"),
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here"),
]

SOURCES = support.ROOT / "tests" / "exceptions"


def build(folder, name="program"):
    driver, program = folder / "libcuda.so.1", folder / name
    shared = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["g++", "-O2", *shared, "-o", driver, SOURCES / "libcuda.cpp"], check=True)
    subprocess.run(["g++", "-O1", "-o", program, SOURCES / f"{name}.cpp", driver, "-ldl"], check=True)
    return program


def test_exceptions_pass_through_hooks_as_without_us(tmp_path):
    program = build(tmp_path)
    plain = support.run([program], traced.environment(tmp_path, tmp_path, preload=False))
    run = support.run([program], traced.environment(tmp_path, tmp_path))
    assert plain.stdout.startswith("caught 1000, unwound by")
    assert (run.returncode, run.stdout) == (0, plain.stdout)
    assert traced.figures(support.report(tmp_path / "run.mtrace")) == (1001, 1000, 4096)


ABORTED = ("aborted after its end", "abort")


@pytest.mark.parametrize(
    "way, words, ended",
    [("uncaught", "killed by SIGABRT", "unknown"), ("joinable", *ABORTED), ("destructor", *ABORTED)],
)
def test_an_abort_of_the_c_plus_plus_library_leaves_a_whole_trace_and_the_summary(tmp_path, way, words, ended):
    """As of a thread pool of PyTorch's that is destroyed at exit."""
    program = build(tmp_path, "ending")
    plain = support.run([program, way], traced.environment(tmp_path, tmp_path, preload=False))
    env = traced.environment(tmp_path, tmp_path, preload=False)
    run = support.run([support.TOOL, "run", "--output", tmp_path / "run", program, way], env, cwd=tmp_path)
    assert (plain.returncode, plain.stdout) == (-signal.SIGABRT, "done\n")
    assert (run.returncode, run.stdout) == (128 + signal.SIGABRT, "done\n")
    assert "terminate called" in plain.stderr and run.stderr.startswith(plain.stderr)
    assert words in run.stderr and run.stderr.count("Next: memtrace report") == 1
    report = support.report(tmp_path / "run.mtrace")
    assert traced.figures(report) == (2, 1, 4096)
    assert report["trace"]["complete"] is True and report["program"]["ended"] == ended
