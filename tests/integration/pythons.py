"""Every Python that this machine has, and how each is started under memtrace: that of the tests,
that of PATH, those of /usr/bin and ~/.pyenv, of Debian's other suites as scripts/fetch-pythons.sh
left them, and those that MEMTRACE_PYTHONS names (paths, apart by colons). One of another suite is
started by the loader of its own C library, because it may need a newer one than there is here."""

import dataclasses
import functools
import os
import pathlib
import re
import subprocess
import sysconfig

import support
import traced

# What is to be tested wherever it can be had; what of it is missing is skipped by these names.
WANTED = ("bullseye-3.9", "trixie-3.13", "sid-3.14", "sid-3.14-jit", "sid-3.15", "sid-3.15-jit")
WANTED += ("free-threaded",)
MISSING = {"free-threaded": "no free-threaded Python here (MEMTRACE_PYTHONS=path names one)"}
NOT_FETCHED = "not fetched: scripts/fetch-pythons.sh"

FIRST_MINOR, FIRST_JIT = 8, 14  # 3.8 on, frames are known; 3.14 on, Debian's have a compiler


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """root: the folder of an unpacked suite, None of what is installed. home: its prefix."""

    name: str
    path: pathlib.Path
    version: tuple
    root: pathlib.Path = None
    is_jit: bool = False

    @property
    def home(self):
        return self.path.parent.parent

    @property
    def loader(self):
        """The loader of its own C library, None where this machine's does."""
        found = self.root and self.root / "usr/lib64/ld-linux-x86-64.so.2"
        return found if found and found.exists() else None

    @property
    def library(self):
        """Its libpython, None if it has none."""
        folders = [self.home / "lib", self.home / "lib/x86_64-linux-gnu"]
        pattern = "libpython%d.%d*.so.1*" % self.version
        found = [path for folder in folders for path in sorted(folder.glob(pattern))]
        return found[0] if found else None

    @property
    def library_path(self):
        folders = [traced.FAST]
        if self.root:
            folders += [self.root / "usr/lib/x86_64-linux-gnu", self.root / "lib/x86_64-linux-gnu"]
        return ":".join(map(str, folders))

    def command(self, program=None):
        """Starts the interpreter, or another program on its libraries."""
        if not self.loader:
            return [program or self.path]
        start = [self.loader, "--library-path", self.library_path, "--preload", support.LIBRARY]
        return [*start, program or self.path]

    def environment(self, folder, **more):
        """Of a run under memtrace whose traces go to folder/run*.mtrace."""
        settings = {"MEMTRACE_OUTPUT": str(folder / "run"), "LC_ALL": "C.UTF-8"}
        settings["LD_LIBRARY_PATH"] = None if self.loader else self.library_path
        settings["PYTHON_JIT"] = "1" if self.is_jit else "0"
        clean = support.environment(preload=not self.loader, **{**settings, **more})
        if self.loader:
            del clean["LD_LIBRARY_PATH"]  # would be that of the simulated GPU
        return clean

    def run(self, folder, *arguments, program=None, **more):
        folder.mkdir(parents=True, exist_ok=True)
        result = support.run(
            [*self.command(program), *arguments], self.environment(folder, **more), cwd=folder
        )
        return traced.Finished(result.returncode, result.stdout, result.stderr, folder)


# ---- finding them -----------------------------------------------------------------------------


def of_path(name, path):
    """An interpreter whose version only it can tell; None if it does not start."""
    text = "import sys; print(sys.executable, *sys.version_info[:2], sep='\\n')"
    try:
        told = subprocess.run(
            [str(path), "-c", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=support.TIMEOUT_S
        )
        executable, major, minor = told.stdout.decode().split("\n")[:3]
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return Interpreter(name, pathlib.Path(executable).resolve(), (int(major), int(minor)))


def installed():
    if support.PYTHON.exists():  # not resolved: then its packages would not be there
        version = tuple(map(int, sysconfig.get_python_version().split(".")))
        yield Interpreter("venv", support.PYTHON, version)
    yield of_path("path", "python3")
    for path in sorted(pathlib.Path("/usr/bin").glob("python3.*")):
        if re.fullmatch(r"python3\.\d+t?", path.name):
            yield of_path(f"usr-{path.name[6:]}", path)
    for path in sorted(pathlib.Path.home().glob(".pyenv/versions/[23].*")):
        version = re.match(r"(\d+)\.(\d+)", path.name)
        if version and (path / "bin/python").exists():
            numbers = tuple(map(int, version.groups()))
            yield Interpreter(f"pyenv-{path.name}", (path / "bin/python").resolve(), numbers)
    for number, path in enumerate(os.environ.get("MEMTRACE_PYTHONS", "").split(":")):
        if path:
            yield of_path(f"given-{number}", path)


def cache():
    """As scripts/common.sh chooses it."""
    chosen = os.environ.get("MEMTRACE_CACHE")
    at_home = pathlib.Path.home() / ".cache/memtrace"
    if chosen:
        return pathlib.Path(chosen)
    return at_home if at_home.is_dir() else support.ROOT / ".cache"


def fetched():
    for path in sorted(cache().glob("pythons/*/usr/bin/python3.*")):
        if not re.fullmatch(r"python3\.\d+t?", path.name):
            continue
        root = path.parent.parent.parent.absolute()
        version = path.name[6:]
        numbers = tuple(map(int, version.rstrip("t").split(".")))
        found = Interpreter(f"{root.name}-{version}", root / "usr/bin" / path.name, numbers, root)
        yield found
        if numbers[1] >= FIRST_JIT:
            yield dataclasses.replace(found, name=f"{found.name}-jit", is_jit=True)


@functools.lru_cache(maxsize=None)
def everything():
    """{name: Interpreter}, each executable once."""
    found, paths = {}, set()
    for python in [*installed(), *fetched()]:
        if python and (python.path, python.is_jit) not in paths:
            paths.add((python.path, python.is_jit))
            found[python.name] = python
    return found



def is_known(python):
    return python.version >= (3, FIRST_MINOR)


def is_free_threaded(python):
    return python.path.name.endswith("t")
