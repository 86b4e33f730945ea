"""Exceptions in flight, things that die, deep stacks, odd names and odd lines."""

import contextlib
import gc
import weakref

from cases_calls import Thing, class_body
from probe import probe
from registry import VERSION, case


# ---- exceptions -------------------------------------------------------------------------------


def raises(depth):
    try:
        if depth:
            raises(depth - 1)
        raise ValueError(
            "a",
            probe(),
        )
    finally:
        probe()


@case
def exceptions_in_flight():
    try:
        raises(3)
    except (probe() and KeyError, ValueError) as error:
        probe()
        try:
            raise RuntimeError from error
        except RuntimeError:
            probe()
    else:
        probe()
    for _ in range(2):
        try:
            continue
        finally:
            probe()


class Dying:
    def __init__(self, *_):
        pass

    def __del__(self):
        probe()


@case
def deaths():
    """Things die on lines that say nothing of it, also on those that the compiler made up."""
    thing = Dying()
    thing = None
    cycle = Dying()
    cycle.itself = cycle
    del cycle
    gc.collect()

    def at_return():
        thing = Dying()
        return 1 if thing else 0

    def in_cell():
        thing = Dying()
        return lambda: thing

    def in_generator():
        thing = Dying()
        yield thing

    def with_error():
        class Error(Exception):
            def __del__(self):
                probe()

        try:
            raise Error
        except Error as error:  # noqa: F841
            pass
        return 1

    at_return()
    in_cell()()
    for thing in in_generator():
        thing = None
    with_error()
    [Dying() for _ in range(2)]
    referred = Thing.of_class and Dying()
    keeper = weakref.ref(referred, probe)
    del referred
    return keeper


@case
def contexts():
    @contextlib.contextmanager
    def context():
        probe()
        try:
            yield
        finally:
            probe()

    with context(), context():
        probe()
    with contextlib.ExitStack() as stack:
        stack.callback(probe)
        stack.enter_context(context())
    with contextlib.suppress(ValueError), context():
        raise ValueError


# ---- depth, names, lines ----------------------------------------------------------------------


def descend(depth):
    if depth == 0:
        return probe()
    return descend(depth - 1)


@case
def recursion():
    for depth in (10, 100):
        descend(depth)


@case
def deep_recursion():
    descend(300)


NON_ASCII = """
def fünf():
    probe()
def 関数():
    fünf()
    probe()
class Ꙁ:
    def 𐐀(self):
        関数()
Ꙁ().𐐀()
"""


@case
def names_beyond_ascii():
    files = ["/no/such/ü.py", "/no/such/関数.py", "/no/such/\U0001f600.py", "/no/such/caf\udce9.py"]
    files.append("a\tb\n\"c\\.py")
    for name in files + ["", "x" * 900]:
        exec(compile(NON_ASCII, name, "exec"), {"probe": probe})


class Text(str):
    pass


class Bytes(bytes):
    pass


@case
def names_that_are_not_plain_strings():
    for name in ("/no/such/derived.py", "/no/such/ü.py", "/no/such/関数.py", "", "x" * 300):
        code = compile("probe()\n", Text(name), "exec")
        exec(code, {"probe": probe})
        exec(code.replace(co_name=Text("name" + name)), {"probe": probe})
    lines = "co_linetable" if VERSION >= (3, 10) else "co_lnotab"
    code = compile("\n\nprobe()\n\nprobe()\n", "<derived>", "exec")
    exec(code.replace(**{lines: Bytes(getattr(code, lines))}), {"probe": probe})


def long_source():
    lines = ["def long(which):"] + ["    x = 0"] * 400 + ["    if which: probe()"]
    lines += ["    x = (1,"] + [""] * 300 + ["        probe(),", "    )", "    x = ["]
    lines += [""] * 70 + ["        probe()", "        for _ in range(2)"] + [""] * 200 + ["    ]"]
    lines += ["    try:", "        raise ValueError(", "", "            probe())"]
    lines += ["    except ValueError as error:", "        probe()", "    finally:", "        probe()"]
    return "\n".join(lines)


@case
def long_functions():
    namespace = {"probe": probe}
    exec(compile(long_source(), "<long>", "exec"), namespace)
    namespace["long"](True)
    namespace["long"](False)


@case
def many_lines():
    # fmt: off
    max(
        probe(),
        2,
        *[3,
          probe()],
        key=lambda value:
            probe() or value
    )
    (
        probe
    )(
        "argument",
        **{"a"
           .join("b"):
           probe()} and {}
    )
    value = (probe() and
             probe()
             or probe())
    assert value, \
        probe()
    # fmt: on
    if (many := probe()) and many:
        probe()
    while probe() is None:
        pass
    return f"{probe()} {'-'.join(str(probe()) for _ in range(2))}"


@case
def replaced_code():
    """Code objects that no compiler made: other first lines and names."""
    for first in (1, 12345, 2_000_000_000):
        code = probe.__code__.replace(co_firstlineno=first, co_name="näme")
        function = type(probe)(code, probe.__globals__)
        function()
    code = class_body.__code__.replace(co_filename="/elsewhere/file.py")
    type(probe)(code, class_body.__globals__)()
