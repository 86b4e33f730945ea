"""What the linker made: the library is a good guest, and an installed tree is complete."""

import os
import re
import subprocess

import pytest

from support import BUILD, LIBRARY, ROOT, TOOL, environment, run

MAX_TLS_BYTES = 256


def readelf(*arguments):
    return subprocess.run(
        ["readelf", "-W", *arguments], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.usefixtures("library")
class TestLibrary:
    def test_needs_only_libc(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", LIBRARY))
        allowed = {"libc.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0"}
        assert set(needed) <= allowed

    def test_has_no_text_relocation_and_no_executable_stack(self):
        assert "TEXTREL" not in readelf("-d", LIBRARY)
        stack = re.search(r"GNU_STACK.*", readelf("-l", LIBRARY)).group()
        assert "RWE" not in stack

    def test_leaves_no_zstd_symbol_in_the_programs_scope(self):
        symbols = readelf("--dyn-syms", LIBRARY)
        assert not re.findall(r"\S*(?:ZSTD|FSE|HUF|XXH)_\S*", symbols)

    def test_thread_local_storage_is_small(self):
        """glibc keeps little room for libraries that are loaded by dlopen."""
        segment = re.search(r"^\s*TLS\s+(.*)$", readelf("-l", LIBRARY), re.M)
        if segment:
            assert int(segment.group(1).split()[4], 16) <= MAX_TLS_BYTES

    def test_exports_only_what_it_interposes(self):
        defined = re.findall(
            r"(?:FUNC|OBJECT|IFUNC)\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+\s+(\S+)",
            readelf("--dyn-syms", LIBRARY),
        )
        ours = re.compile(
            r"cu|nccl|_ZN?K?\d*(c10|2at|3c10)|memtrace_|Initialize"
            r"|dl|v?fork|_?_?_exit|_Exit|quick_exit|abort|exec|posix_spawn|clone|pthread_|daemon"
        )
        strange = [name for name in defined if not ours.match(name)]
        assert not strange

    def test_is_silent_in_a_program_without_cuda(self, tmp_path):
        result = run(["/bin/sh", "-c", "echo hello"], environment(), cwd=tmp_path)
        assert (result.returncode, result.stdout, result.stderr) == (0, "hello\n", "")
        assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("tool")
def test_tool_needs_no_cuda():
    needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", TOOL))
    assert not [name for name in needed if re.match(r"lib(cu|nv)", name)]


@pytest.mark.usefixtures("library", "tool", "simgpu")
def test_install_lays_out_a_complete_tree(tmp_path):
    make = run(
        ["make", f"O={BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/opt/memtrace", "install"],
        environment(preload=False, CUDA_HOME=os.environ.get("CUDA_HOME")),
        cwd=ROOT,
    )
    assert make.returncode == 0, make.stderr
    installed = tmp_path / "opt" / "memtrace"
    for name in (
        "bin/memtrace",
        "lib/memtrace/libmemtrace.so",
        "lib/memtrace/libmemtrace-sim/libcuda.so.1",
        "lib/memtrace/libmemtrace-sim/libcudart.so.13",
        "lib/memtrace/libmemtrace-sim/python/sitecustomize.py",
        "include/memtrace/trace.h",
    ):
        assert (installed / name).is_file(), f"{name} is missing"


# Data flows hooks → recorder → trace → model → report; includes go to those who know less.
MAY_INCLUDE = {
    "base": {"base"},
    "trace": {"base", "trace"},
    "model": {"base", "trace", "model"},
    "report": {"base", "trace", "model", "report"},
    "recorder": {"base", "trace", "model", "report", "recorder"},
    "hooks": {"recorder", "hooks"},
    "cli": {"base", "trace", "model", "report", "cli", "simgpu"},  # of simgpu: the table of cards
    "simgpu": {"simgpu"},
}


@pytest.mark.parametrize("folder", MAY_INCLUDE)
def test_folders_include_only_what_lies_below_them(folder):
    for path in (ROOT / "src" / folder).glob("*.[ch]"):
        included = set(re.findall(r'^#include "(\w+)/', path.read_text(), re.M))
        assert included <= MAY_INCLUDE[folder], path.name
