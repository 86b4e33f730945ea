"""Every kind of call that Python has, each ending in probe(). A case is a function without
arguments; one that this Python or this machine has not is left out, and SKIPPED says so."""

import asyncio
import collections
import contextlib
import ctypes
import functools
import gc
import os
import runpy
import signal
import sys
import tempfile
import weakref

from probe import probe

CASES, SKIPPED = [], []
ALONE = {"imported", "collector_callbacks", "monitored", "signals"}  # change what threads share
VERSION = sys.version_info[:2]


def case(function):
    CASES.append(function)
    return function


def source(since, text, name="<source>"):
    """A case in the syntax of a later version; it defines main()."""

    def run():
        namespace = {"probe": probe, "__name__": "source"}
        exec(compile(text, name, "exec"), namespace)
        namespace["main"]()

    if VERSION >= since:
        CASES.append(run)
    return run


# ---- functions and classes --------------------------------------------------------------------


class Base:
    def __init_subclass__(cls, **_):
        probe()

    def inherited(self):
        probe()


class Attribute:
    def __set_name__(self, owner, name):
        probe()

    def __get__(self, instance, owner):
        probe()
        return 1

    def __set__(self, instance, value):
        probe()


class Meta(type):
    def __new__(mcs, name, bases, namespace):
        probe()
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *arguments):
        probe()
        return super().__call__(*arguments)


class Thing(Base, metaclass=type("Both", (Meta, type(Base)), {})):
    attribute = Attribute()
    probe()

    def __new__(cls, *_):
        probe()
        return super().__new__(cls)

    def __init__(self, depth=2):
        self.method(depth)

    def method(self, depth):
        if depth:
            return self.method(depth - 1)
        probe()

    @classmethod
    def of_class(cls):
        probe()

    @staticmethod
    def of_nothing():
        probe()

    @property
    def computed(self):
        probe()
        return 1

    def __getattr__(self, name):
        probe()
        return 1

    def __eq__(self, other):
        probe()
        return True

    def __hash__(self):
        probe()
        return 1

    def __len__(self):
        probe()
        return 3

    def __getitem__(self, index):
        probe()
        return index

    def __call__(self, *_):
        probe()

    def __repr__(self):
        probe()
        return "thing"

    def __enter__(self):
        probe()
        return self

    def __exit__(self, *_):
        probe()
        return True

    def __add__(self, other):
        probe()
        return self

    class Inner:
        def method(self):
            def function():
                return (lambda: (lambda: probe())())()

            function()

    def inherited(self):
        super().inherited()


@case
def methods():
    thing = Thing()
    thing.of_class()
    thing.of_nothing()
    thing.computed
    thing.missing
    thing.attribute
    thing.attribute = 1
    thing == thing
    thing()
    thing[1]
    len(thing)
    thing + thing
    f"{thing!r}"
    {thing: 1}
    thing.inherited()
    Thing.Inner().method()
    with thing as other:
        other.method(1)
        raise ValueError


@case
def class_body():
    class Local(Base):
        probe()
        values = [probe() for _ in range(2)]

        class Nested:
            probe()

    return Local


@case
def lambdas():
    (lambda: probe())()
    (lambda *a, **k: probe(*a, **k))(1, b=2)
    default = lambda value=probe(): value  # noqa: E731
    default()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        return function(*arguments, **named)

    return wrapper


@decorated
@decorated
def behind_decorators():
    probe()


@functools.lru_cache(maxsize=None)
def behind_cache(_):
    probe()


@functools.singledispatch
def dispatched(_):
    probe()


@dispatched.register(int)
def _(_):
    probe()


@case
def decorators():
    behind_decorators()
    behind_cache(object())
    dispatched("")
    dispatched(1)
    functools.partial(probe, 1)()


@case
def closures():
    kept = 1

    def outer():
        own = kept

        def inner():
            nonlocal own
            own += 1
            probe()
            return own

        return inner()

    outer()


# ---- generators and coroutines ----------------------------------------------------------------


def numbers(count):
    try:
        for index in range(count):
            probe()
            got = yield index
            if got:
                probe()
    except KeyError:
        probe()
        yield -1
    finally:
        probe()


def delegating():
    yield from numbers(2)
    probe()


@case
def generators():
    list(delegating())
    sum(1 for _ in numbers(2))
    sent = numbers(3)
    next(sent)
    sent.send(1)
    sent.throw(KeyError())
    sent.close()
    abandoned = numbers(2)
    next(abandoned)
    del abandoned
    gc.collect()


@case
def comprehensions():
    [probe() for _ in range(2)]
    {probe() for _ in range(2)}
    {index: probe() for index in range(2)}
    [[probe() for _ in range(2)] for _ in range(2)]
    list(probe() for _ in range(2))
    any(probe() is None for _ in range(2))
    [index for index in numbers(2) if probe()]


class Async:
    async def __aenter__(self):
        probe()

    async def __aexit__(self, *_):
        probe()

    def __await__(self):
        probe()
        yield from asyncio.sleep(0).__await__()


async def waits(depth):
    if depth:
        await waits(depth - 1)
    probe()
    await asyncio.sleep(0)
    probe()


async def produces():
    for index in range(2):
        probe()
        await asyncio.sleep(0)
        yield index


async def everything_async():
    await asyncio.gather(waits(3), waits(1), waits(0))
    await asyncio.ensure_future(waits(1))
    async for _ in produces():
        probe()
    [probe() async for _ in produces()]
    async with Async():
        probe()
    await Async()
    asyncio.get_event_loop().call_soon(probe)
    await asyncio.get_event_loop().run_in_executor(None, probe)


@case
def coroutines():
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(everything_async())
        loop.run_until_complete(loop.shutdown_default_executor()) if VERSION >= (3, 9) else None
    finally:
        loop.close()
    abandoned = waits(1)
    abandoned.send(None)
    abandoned.close()


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
    files = ["/tmp/ü.py", "/tmp/関数.py", "/tmp/\U0001f600.py", "/tmp/caf\udce9.py", "a\tb\n\"c\\.py"]
    for name in files + ["", "x" * 900]:
        exec(compile(NON_ASCII, name, "exec"), {"probe": probe})


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


# ---- code from text, imports ------------------------------------------------------------------


@case
def executed():
    exec("probe()\n\nprobe()\ndef f():\n  probe()\nf()")
    eval("probe()")
    eval("[probe() for _ in range(2)]")
    exec("exec('eval(\"probe()\")')")
    eval(compile("(lambda: probe())()", "<evaluated>", "eval"))


MODULE = """
import sys
from probe import probe
probe()
class Imported:
    probe()
    def __init__(self):
        probe()
Imported()
if sys.version_info >= (3, 7):
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return probe()
"""


@case
def imported():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "imported_by_case.py")
        with open(path, "w") as file:
            file.write(MODULE)
        sys.path.insert(0, folder)
        try:
            import imported_by_case

            imported_by_case.attribute
            runpy.run_path(path)
        finally:
            sys.path.remove(folder)
            sys.modules.pop("imported_by_case", None)


# ---- called from C ----------------------------------------------------------------------------

COMPARE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
)


def compare(left, right):
    probe()
    return left[0] - right[0]


@case
def called_from_c():
    sorted([3, 1, 2], key=lambda value: probe() and value)
    list(map(probe, [1, 2]))
    list(filter(lambda _: probe(), [1]))
    functools.reduce(lambda _, value: probe(), [1, 2, 3])
    list(zip(numbers(2), map(probe, (1, 2))))
    collections.defaultdict(probe)["missing"]
    {**collections.OrderedDict(a=probe())}
    min([1, 2], key=probe)
    array = (ctypes.c_int * 4)(3, 1, 2, 0)
    ctypes.CDLL(None).qsort(array, 4, 4, COMPARE(compare))
    ctypes.PyDLL(None).qsort(array, 4, 4, COMPARE(compare))
    next(iter(probe, None))


@case
def collector_callbacks():
    def callback(phase, info):
        probe()

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)


@case
def signals():
    import threading

    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.signal(signal.SIGUSR2, probe)
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
        sum(1 for _ in range(100))
    finally:
        signal.signal(signal.SIGUSR2, before)


# ---- tracing ----------------------------------------------------------------------------------


def worth_tracing():
    Thing()
    list(delegating())
    descend(5)
    comprehensions()
    behind_decorators()
    many_lines()


@case
def traced():
    def trace(frame, event, argument):
        return trace

    for install in (sys.settrace, sys.setprofile):
        install(trace)
        try:
            worth_tracing()
        finally:
            install(None)


@case
def traced_and_probed():
    """The trace function itself allocates, on every line of another function."""

    def trace(frame, event, argument):
        if frame.f_code in (closures.__code__, numbers.__code__):
            probe()
            return trace

    for install in (sys.settrace, sys.setprofile):
        install(trace)
        try:
            closures()
            list(numbers(1))
        finally:
            install(None)


@case
def monitored():
    monitoring = getattr(sys, "monitoring", None)
    if not monitoring or monitoring.get_tool(3):
        return
    events = monitoring.events
    monitoring.use_tool_id(3, "memtrace's tests")
    for event in (events.LINE, events.CALL, events.PY_START, events.INSTRUCTION):
        monitoring.register_callback(3, event, lambda *_: None)
    try:
        for chosen in (events.LINE | events.CALL, events.PY_START, events.INSTRUCTION):
            monitoring.set_events(3, chosen)
            worth_tracing()
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)


# ---- later syntax -----------------------------------------------------------------------------

source(
    (3, 10),
    """
def main():
    match {"a": probe(), "b": [1, 2]}:
        case {"a": int(value), "b": [first, *rest]} if probe():
            probe()
    match probe():
        case int():
            probe()
""",
)
source(
    (3, 11),
    """
def main():
    try:
        raise ExceptionGroup("g", [ValueError(probe()), KeyError()])
    except* ValueError as group:
        probe()
    except* KeyError:
        probe()
""",
)
source(
    (3, 12),
    """
type Lazy[T] = (probe(), T)[1]
def generic[T: (probe(), int)[1]](value: T):
    probe()
class Generic[T]:
    probe()
    def method[U](self):
        probe()
def main():
    Lazy.__value__
    generic(1)
    generic.__type_params__[0].__bound__
    Generic[int]().method()
    f"{f'{probe()}'}"
""",
)
source(
    (3, 14),
    """
class Annotated:
    value: probe()
    def method(self, value: probe()) -> probe():
        pass
def main():
    Annotated.__annotations__
    Annotated.method.__annotations__
    t"{probe()}"
    try:
        pass
    finally:
        probe()
""",
)

try:
    import greenlet
except ImportError:
    SKIPPED.append("greenlet")
else:

    @case
    def greenlets():
        def down(depth, other):
            if depth:
                return down(depth - 1, other)
            for _ in range(3):
                probe()
                other().switch()
                probe()

        def inside_generator():
            def generator():
                yield down(4, lambda: first)

            list(generator())

        first = greenlet.greenlet(lambda: down(3, lambda: second))
        second = greenlet.greenlet(inside_generator)
        first.switch()
        probe()
        del first, second
        gc.collect()
