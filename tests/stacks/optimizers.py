"""Usage: optimizers.py OUT: optimizers of a stand-in for PyTorch take steps in which a block is
handed out and taken back. OUT gets, for each thread that did, the optimizers in the order in which
a reader of the trace should learn of them: those whose step is another's than the one before."""

import ctypes
import json
import sys
import threading

SOURCE = '''
import functools

class Optimizer:
    def __init__(self, rebinds=None):
        self.rebinds = rebinds

    @staticmethod
    def profile_hook_step(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            self, *_ = args
            if self.rebinds:
                args = self.rebinds(args)
            return function(*args, **kwargs)

        return wrapper

    def __init_subclass__(cls):
        cls.step = Optimizer.profile_hook_step(cls.step)
'''
names = {}
exec(compile(SOURCE, "/lib/torch/optim/optimizer.py", "exec"), names)
Optimizer = names["Optimizer"]

note = ctypes.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
note.argtypes = (ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_uint16)
note.restype = None
CUDA, BYTES, DEEP = 1, 512, 200


def work():
    note(1 << 40, BYTES, BYTES, BYTES, CUDA)
    note(1 << 40, -BYTES, 0, BYTES, CUDA)


class Plain(Optimizer):
    def step(self, closure=None):
        work()


class Captured(Optimizer):
    """`self` is in a cell that is new at every call."""

    def step(self):
        def inner():
            return self.rebinds, work()

        inner()


class Generating(Optimizer):
    def parts(self):
        work()
        yield
        work()

    def step(self):
        return list(self.parts())


class Ahead(Optimizer):
    """Steps others on the way."""

    def __init__(self, *inner):
        super().__init__()
        self.inner = inner

    def step(self):
        work()
        for optimizer in self.inner:
            optimizer.step()
            work()


class Deep(Plain):
    def step(self):
        super().step()


def descend(depth, function):
    return descend(depth - 1, function) if depth else function()


def some():
    """Returns those that are to be told."""
    first, second = Plain(), Plain()
    work()
    for optimizer in (first, second, first, first, second):
        optimizer.step()
        work()
    told = [first, second, first, second]
    for kind in (Captured, Generating, Deep):
        optimizers = [kind() for _ in range(3)]
        for _ in range(2):
            for optimizer in optimizers:
                optimizer.step()
            optimizers[-1].step()
        told += optimizers * 2
    ahead = Ahead(first, second)
    ahead.step()
    ahead.step()
    told += [ahead]
    unknown = Plain(rebinds=list)  # its arguments are no tuple any more
    unknown.step()
    descend(DEEP, second.step)  # the frames that are kept do not reach out of it
    ahead.step()
    descend(20, second.step)
    return told + [second]


def main(out):
    kept, threads = {}, []

    def run():
        kept[threading.get_native_id()] = some()

    run()
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    with open(out, "w") as file:
        json.dump({tid: [id(optimizer) for optimizer in all] for tid, all in kept.items()}, file)


main(sys.argv[1])
