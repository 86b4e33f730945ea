"""What all integration tests share: the option --full, and what must have been built."""

import os
import signal

import pytest

import support


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="run the long matrices in full (MEMTRACE_FULL=1)"
    )


def pytest_configure(config):
    # In the environment, so that support.matrix() and pytest-xdist's workers see it.
    if config.getoption("--full"):
        os.environ["MEMTRACE_FULL"] = "1"
    # What runs in the background of a script ignores these, and so would every program of a test.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def library():
    """Path of libmemtrace.so."""
    return require(support.LIBRARY)


@pytest.fixture(scope="session")
def tool():
    """Path of the tool `memtrace`."""
    return require(support.TOOL)


@pytest.fixture(scope="session")
def simgpu():
    """Folder of the simulated GPU's libraries."""
    require(support.SIMGPU / "libcuda.so.1")
    return support.SIMGPU


def require(path):
    if not path.exists():
        pytest.skip(f"{path.name} is not built")
    return path
