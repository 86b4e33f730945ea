"""The simulated GPU against memory that others measured on their cards (tests/published)."""

import importlib.util
import os
import sys

import pytest

import support

PUBLISHED = support.ROOT / "tests" / "published"
sys.path.insert(0, str(PUBLISHED))
from rows import ROWS  # noqa: E402

# By its file: tests/attribution has a compare.py too, which another test may have imported.
SPEC = importlib.util.spec_from_file_location("published_compare", PUBLISHED / "compare.py")
compare = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = compare
SPEC.loader.exec_module(compare)

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")
# A conv net, a transformer's loss: in each `make check`.
ALWAYS = ("TSN resnet50, 32 x 3 images", "loss of Gemma 2 (2B), forward and backward")
IS_FULL = os.environ.get("MEMTRACE_FULL") == "1"


@pytest.mark.parametrize("row", [row for row in ROWS if IS_FULL or row.name in ALWAYS], ids=lambda row: row.name)
def test_the_figure_is_that_of_a_real_card(row):
    outcome = compare.measure(row)
    if outcome.ours is None:
        pytest.skip(f"PyTorch {row.torch} is not fetched: scripts/fetch-torches.sh")
    assert outcome.is_within(row.bound), compare.line_of(outcome)


def test_the_table_is_large_enough_and_says_where_its_figures_are_from():
    assert len(ROWS) >= 12 and len({row.name for row in ROWS}) == len(ROWS)
    assert all(row.source and row.measured for row in ROWS)
    assert {row.name for row in ROWS} >= set(ALWAYS)
