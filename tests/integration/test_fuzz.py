"""The fuzzers, for a moment: that they build, take their seeds, and find nothing at once."""

import os
import shutil

import pytest

import support


@pytest.mark.skipif(not shutil.which("clang"), reason="no clang here")
def test_fuzzers_find_nothing_in_a_moment():
    # The folder's name as `make fuzz` has it, or what it has built would not be made anew when a header changes.
    build = os.path.relpath(support.BUILD, support.ROOT)
    command = ["make", f"O={build}", "FUZZ_SECONDS=1", "fuzz"]
    result = support.run(command, support.environment(preload=False), cwd=support.ROOT, timeout=3 * support.TIMEOUT_S)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
    fuzzers = [path for path in (support.ROOT / "tests" / "fuzz").glob("fuzz_*") if path.suffix in (".c", ".py")]
    assert result.stdout.count("== fuzz_") == len(fuzzers) >= 12
