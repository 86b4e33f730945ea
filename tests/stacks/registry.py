"""The list of cases: functions without arguments that allocate from some kind of Python frame."""

import sys

from probe import probe

CASES = []
SKIPPED = []  # what this Python or this machine has not
ALONE = set()  # names of those that change what threads share
VERSION = sys.version_info[:2]


def case(function):
    CASES.append(function)
    return function


def case_alone(function):
    ALONE.add(function.__name__)
    return case(function)


def source(since, text):
    """A case in the syntax of a later version; it defines main()."""

    def run():
        namespace = {"probe": probe, "__name__": "source"}
        exec(compile(text, "<source>", "exec"), namespace)
        namespace["main"]()

    if VERSION >= since:
        case(run)
