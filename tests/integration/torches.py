"""The versions of PyTorch that scripts/fetch-torches.sh puts into environments of their own."""

import support
from pythons import cache

LISTS = support.ROOT / "scripts" / "torches"


def versions():
    """All that can be fetched, oldest first."""
    names = [path.stem for path in LISTS.glob("*.txt")]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def python_of(version):
    """Its Python, None if it was not fetched."""
    place = cache() / "torches" / version
    return place / "bin" / "python" if (place / "list.txt").exists() else None


# The wheels for CUDA 11 are built for cards up to this.
FOR_CUDA_11 = {"SIMGPU_CAPABILITY": "8.0"}
# What PyTorch 2.0 does not have: expandable segments, and its recorder as it is today.
LACKS = {"2.0.1": {"alloc_expandable", "history"}}


def is_for_cuda_11(version):
    return version.startswith("2.0.")
