"""Programs beside PyTorch that use a GPU, from scripts/clients, under libmemtrace.so on the simulated GPU."""

import json
import os
import re
import shutil
import subprocess

import pytest

import support
import traced

INSTALLED = support.ROOT / ".venv" / "clients"
SCRIPTS = support.ROOT / "tests" / "clients"
CONTEXT_BYTES = 300 << 20  # of the simulated GPU, each


def installed(name):
    """The folder of a client; skips the test when scripts/fetch-clients.sh has not put it there."""
    place = INSTALLED / name
    if not (place / "list.txt").exists():
        pytest.skip(f"{name} is not installed (scripts/fetch-clients.sh {name})")
    return place


def site_packages(name):
    """The Python packages of a client."""
    return installed(name) / "site-packages"


def is_full():
    return os.environ.get("MEMTRACE_FULL") == "1"


def driver_figures(path):
    """What the simulated driver counted: {device: {"used": bytes, "peak": ..., "allocs": ..., "frees": ...}},
    of the one process that took memory."""
    lines = [dict(re.findall(r"(\w+)=(\d+)", line)) for line in path.read_text().splitlines()]
    lines = [{key: int(value) for key, value in line.items()} for line in lines]
    processes = {line["pid"] for line in lines if line["allocs"]}
    assert len(processes) == 1, lines
    return {line["device"]: line for line in lines if line["pid"] in processes}


def cuda_include():
    """The folder of the headers that this build was made with."""
    lines = (support.BUILD / "gen" / "config.mk").read_text().splitlines()
    settings = dict(line.split(" := ") for line in lines if " := " in line)
    return support.ROOT / settings["CUDA_INCLUDE"].strip()


def run(folder, program, *arguments, **more):
    """Runs a program: (the finished run, what it told on its last line, the driver's figures)."""
    stats = folder / "stats"
    finished = traced.run(
        folder, str(program), *arguments, cuda=support.SIMGPU, SIMGPU_STATS=str(stats), **more
    )
    assert finished.status == 0, finished.stdout + finished.stderr
    return finished, json.loads(finished.stdout.splitlines()[-1]), driver_figures(stats)


def run_script(folder, script, client, **more):
    """The same of tests/clients/SCRIPT, in Python, with a client's packages."""
    path = str(site_packages(client))
    return run(folder, support.PYTHON, SCRIPTS / script, PYTHONPATH=path, **more)


def run_ggml(folder):
    """tests/clients/ggml.c on the libraries of Debian sid, by their own loader."""
    root = installed("ggml") / "root" / "usr"
    if not shutil.which("gcc"):
        pytest.skip("no gcc here")
    libraries = root / "lib" / "x86_64-linux-gnu"
    words = ["gcc", "-O1", "-g", SCRIPTS / "ggml.c", f"-I{root / 'include'}", f"-L{libraries}"]
    words += ["-lggml", "-lggml-base", "-Wl,--allow-shlib-undefined", "-o", folder / "program"]
    subprocess.run(words, check=True)
    loader = root / "lib64" / "ld-linux-x86-64.so.2"
    backend = libraries / "ggml" / "backends0" / "libggml-cuda.so"
    return run(folder, loader, folder / "program", backend, LD_LIBRARY_PATH=f"{libraries}:{support.SIMGPU}")
