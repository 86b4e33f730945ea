"""Every kind of call that Python has, each ending in probe()."""

from cases_calls import methods
from cases_lines import descend
from cases_outside import imported
from registry import ALONE, CASES, SKIPPED

__all__ = ["ALONE", "CASES", "SKIPPED", "descend", "imported", "methods"]
