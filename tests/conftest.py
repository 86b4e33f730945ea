"""What all integration tests share: the option --full, and what must have been built."""

import os
import re
import signal

import pytest

import support


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="run the long matrices in full (MEMTRACE_FULL=1)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.option.reruns, config.option.only_rerun = 3, [support.EXIT_ABORT]  # pytest-rerunfailures
    # In the environment, so that support.matrix() and pytest-xdist's workers see it.
    if config.getoption("--full"):
        os.environ["MEMTRACE_FULL"] = "1"
    # What runs in the background of a script ignores these, and so would every program of a test.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_collection_modifyitems(config, items):
    if support.LINKED:
        left_out = [item for item in items if not item.get_closest_marker("linked")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("linked")]


# The recorder starts on a stack of its own, and leaves it before it is unmapped; and a cloned child ends on one. In a
# forked child the search for leaks may look for a thread that only its parent has; what it finds is told all the same.
HARMLESS = (
    r"==\d+==Running thread \d+ was not suspended\. False leaks are possible\.\n|"
    r"==\d+==WARNING: ASan (doesn't fully support makecontext.*\n"
    r"|is ignoring requested __asan_handle_no_return.*\nFalse positive.*\nFor details.*\n)"
)


def sanitizers_said():
    """What they wrote, in any process since the last look."""
    said = ""
    for path in support.SANITIZER_LOG.parent.glob(f"{support.SANITIZER_LOG.name}.*"):
        said += re.sub(HARMLESS, "", path.read_text(errors="replace"))
        path.unlink(missing_ok=True)
    return said


@pytest.fixture(autouse=support.LINKED)
def sanitizers_are_silent():
    yield
    said = sanitizers_said()
    assert not said, said[:6000]


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
