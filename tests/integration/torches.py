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
