"""Functions, classes, generators, coroutines."""

import asyncio
import functools
import gc

from probe import probe
from registry import VERSION, case


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
