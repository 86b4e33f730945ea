"""C++ exceptions through hooked calls: caught as without us, by the same unwinder, and nobody is deaf after."""

import shutil
import subprocess

import pytest

import support
import traced

pytestmark = [
    pytest.mark.usefixtures("library", "tool"),
    pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here"),
]

SOURCES = support.ROOT / "tests" / "exceptions"


def build(folder):
    driver, program = folder / "libcuda.so.1", folder / "program"
    shared = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["g++", "-O2", *shared, "-o", driver, SOURCES / "libcuda.cpp"], check=True)
    subprocess.run(["g++", "-O1", "-o", program, SOURCES / "program.cpp", driver, "-ldl"], check=True)
    return program


def test_exceptions_pass_through_hooks_as_without_us(tmp_path):
    program = build(tmp_path)
    plain = support.run([program], traced.environment(tmp_path, tmp_path, preload=False))
    run = support.run([program], traced.environment(tmp_path, tmp_path))
    assert plain.stdout.startswith("caught 1000, unwound by")
    assert (run.returncode, run.stdout) == (0, plain.stdout)
    assert traced.figures(support.report(tmp_path / "run.mtrace")) == (1001, 1000, 4096)
