"""Watches a PyTorch program and writes which storages it used as what, for truth_labels.py.

Imported by truth.py in the run that makes the truth. Nothing here looks at how memtrace works: it
asks PyTorch's objects. A storage is noted as (device, index, address, label), where the index is
the number of allocations and frees of the device so far; with PyTorch's own record of these, which
is written too, this names the block. No reference to a tensor is kept, and nothing is allocated on
the GPU, so that the program allocates just as without.
"""

import atexit
import contextlib
import functools
import json
import os
import sys
import threading
import weakref

import torch
import torch.nn as nn
from torch.optim import optimizer as optim

seen = []  # [device, index, address, label]
moments = []  # [name, {device: index}]
spans = []  # [kind, begin, end]; kind: backward, grad, step, communication
unchanged = {}  # (device, address, label) -> frees of the device when it was last noted
modules = weakref.WeakValueDictionary()  # by id: some have no hash yet when they are made
optimizers = weakref.WeakSet()
leaves = weakref.WeakValueDictionary()  # id -> leaf of a graph that ran backward
here = threading.local()
begun_threads = set()


# ---- noting -----------------------------------------------------------------------------------


def counted(device):
    """Allocations and frees of a device so far."""
    count = torch._C._cuda_memoryStats(device)["allocation"]["all"]
    return count["allocated"], count["freed"]


def now():
    if not torch.cuda.is_initialized():
        return {}
    return {device: sum(counted(device)) for device in range(torch.cuda.device_count())}


def plain(value):
    """The tensors in a value: of a subclass those that it wraps, of a container its own."""
    if isinstance(value, torch.Tensor):
        inner = getattr(value, "_local_tensor", None)
        if value.layout == torch.sparse_coo:  # its indices may be the batch's own
            yield value._values()
        else:
            yield value if inner is None else inner
    elif isinstance(value, dict):
        for part in value.values():
            yield from plain(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from plain(part)


def note(label, *values):
    counts = {}
    for tensor in plain(values):
        if tensor.layout != torch.strided or tensor.device.type != "cuda":
            continue
        try:
            address = tensor.untyped_storage().data_ptr()
        except (NotImplementedError, RuntimeError, ValueError):  # one without storage, as yet or ever
            continue
        device = tensor.device.index
        if not address:
            continue
        if device not in counts:
            counts[device] = counted(device)
        allocated, freed = counts[device]
        if unchanged.get((device, address, label)) != freed:
            unchanged[device, address, label] = freed
            seen.append([device, allocated + freed, address, label])


def sample():
    """Notes parameters, buffers, their gradients, and optimizer states, as they are now."""
    for module in list(modules.values()):
        own = list(module.__dict__.get("_parameters", {}).values())
        note("parameters", own, list(module.__dict__.get("_buffers", {}).values()))
        note_gradients(own)
    for optimizer in list(optimizers):
        note("optimizer_state", dict(optimizer.__dict__.get("state", {})))
        for group in optimizer.__dict__.get("param_groups", []):
            note("parameters", group["params"])
            note_gradients(group["params"])
    note_gradients(list(leaves.values()))


def note_gradients(tensors):
    note("gradients", [t.grad for t in tensors if t is not None and t.is_leaf])


# ---- what a program says ----------------------------------------------------------------------


def batch(*tensors):
    note("input", tensors)


def label(category, *tensors):
    note(category, tensors)


def mark(name):
    sample()
    moments.append([name, now()])


# ---- modules and optimizers -------------------------------------------------------------------


def after(owner, name, action):
    """Calls action(self, *arguments of the method) when a method has returned."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self, *arguments, **named):
        result = original(self, *arguments, **named)
        action(self, *arguments)
        return result

    setattr(owner, name, method)


def watch_modules():
    after(nn.Module, "__init__", lambda self, *_: modules.__setitem__(id(self), self))
    after(nn.Module, "__setstate__", lambda self, *_: modules.__setitem__(id(self), self))
    after(nn.Module, "register_parameter", lambda self, _, value: note("parameters", value))
    after(nn.Module, "register_buffer", lambda self, _, value, *__: note("parameters", value))
    after(nn.Module, "_apply", lambda self, *_: note("parameters", *state_of(self)))
    after(nn.Module, "load_state_dict", lambda self, *_: note("parameters", *state_of(self)))


def state_of(module):
    return list(module.parameters()), list(module.buffers())


def watch_optimizers():
    after(optim.Optimizer, "__init__", lambda self, *_: optimizers.add(self))
    optim.register_optimizer_step_pre_hook(step_begins)
    optim.register_optimizer_step_post_hook(step_ends)


def spanned(closure):
    """A closure's forward pass is none of the optimizer's own work."""

    @functools.wraps(closure)
    def run():
        begin = now()
        result = closure()
        spans.append(["closure", begin, now()])
        return result

    return run


def step_begins(optimizer, arguments, named):
    sample()
    here.__dict__.setdefault("steps", []).append(now())
    if len(arguments) > 1 and callable(arguments[1]):
        return (arguments[0], spanned(arguments[1]), *arguments[2:]), named
    if callable(named.get("closure")):
        return arguments, {**named, "closure": spanned(named["closure"])}
    return None


def step_ends(*_):
    sample()
    begin = here.steps.pop()
    moments.append(["post_step", now()])
    if not here.steps:  # an optimizer may step another one
        spans.append(["step", begin, now()])


# ---- backward ---------------------------------------------------------------------------------


def find_leaves(values):
    """Notes the leaves of the graphs of these tensors."""
    nodes = [t.grad_fn for t in plain(values) if t.grad_fn is not None]
    visited = set(nodes)
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor):
            leaves[id(leaf)] = leaf
            note("leaf", leaf)
        for below, _ in node.next_functions:
            if below is not None and below not in visited:
                visited.add(below)
                nodes.append(below)


def is_outermost():
    """A backward inside another runs on one of PyTorch's threads; the compiler's is not real."""
    if getattr(here, "backward", False) or torch._guards.detect_fake_mode() is not None:
        return False
    return threading.get_ident() in begun_threads or threading.current_thread() is main_thread


def watched(original, kind):
    @functools.wraps(original)
    def run(*arguments, **named):
        if not is_outermost():
            return original(*arguments, **named)
        find_leaves(arguments[0] if arguments else named.get("outputs", named.get("tensors")))
        sample()
        here.backward = True
        begin = now()
        moments.append(["pre_bwd", begin])
        try:
            result = original(*arguments, **named)
        finally:
            here.backward = False
        end = now()
        note("gradients", result)
        sample()
        moments.append(["post_bwd", end])
        spans.append([kind, begin, end])
        return result

    return run


def pack(tensor):
    note("saved", tensor)
    return tensor.detach() if type(tensor) in (torch.Tensor, nn.Parameter) else tensor


def unpack(packed):
    return packed


def push_hooks():
    torch._C._autograd._push_saved_tensors_default_hooks(pack, unpack)


def noting_what_is_kept(init):
    """Hooks of the program's own, such as those of checkpointing: what they keep on the GPU."""

    @functools.wraps(init)
    def method(self, own_pack, own_unpack):
        @functools.wraps(own_pack)
        def pack_and_note(tensor):
            try:
                packed = own_pack(tensor)
            except BaseException:  # checkpointing recomputes no further than the last tensor that is needed, which it has
                note("saved", tensor)
                raise
            note("saved", packed)
            return packed

        init(self, pack_and_note, own_unpack)

    return method


def without_hooks(original):
    """torch.func refuses hooks; what it saves is then told by its lifetime."""

    @contextlib.contextmanager
    def disabled(message):
        removed = torch._C._autograd._top_saved_tensors_default_hooks(False)
        ours = removed is not None and removed[0] is pack
        if ours:
            torch._C._autograd._pop_saved_tensors_default_hooks()
        try:
            with original(message):
                yield
        finally:
            if ours:
                push_hooks()

    return disabled


def watch_threads():
    original = threading.Thread._bootstrap_inner

    def begin(self):
        begun_threads.add(threading.get_ident())
        push_hooks()
        original(self)

    threading.Thread._bootstrap_inner = begin


def watch_autograd():
    graph = torch.autograd.graph
    torch.autograd.backward = watched(torch.autograd.backward, "backward")
    torch.autograd.grad = watched(torch.autograd.grad, "grad")
    graph.saved_tensors_hooks.__init__ = noting_what_is_kept(graph.saved_tensors_hooks.__init__)
    graph.disable_saved_tensors_hooks = without_hooks(graph.disable_saved_tensors_hooks)
    watch_threads()
    push_hooks()


# ---- communication ----------------------------------------------------------------------------


def spanning(owner, name):
    """Blocks that are made in this function are buffers of communication, if nothing else."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def function(*arguments, **named):
        begin = now()
        try:
            return original(*arguments, **named)
        finally:
            spans.append(["communication", begin, now()])

    setattr(owner, name, function)


def watch_communication():
    """DDP's buckets are made when it is, and again before its second forward. FSDP is watched if
    the program imported it before truth."""
    spanning(nn.parallel.DistributedDataParallel, "_ddp_init_helper")
    spanning(nn.parallel.DistributedDataParallel, "_pre_forward")
    if "torch.distributed.fsdp" not in sys.modules:
        return
    from torch.distributed.fsdp._fully_shard import _fsdp_param, _fsdp_param_group

    spanning(_fsdp_param_group, "foreach_all_gather")
    spanning(_fsdp_param_group, "foreach_reduce")
    after(
        _fsdp_param.FSDPParam,
        "init_unsharded_param",
        lambda self: note("parameters", self._unsharded_param),
    )


# ---- the end ----------------------------------------------------------------------------------


def write():
    sample()
    kinds = {"alloc": 1, "free_requested": 0}
    traces = torch.cuda.memory._snapshot()["device_traces"]
    record = {
        "torch": torch.__version__,
        "events": [
            [[kinds[e["action"]], e["addr"], e["size"]] for e in trace if e["action"] in kinds]
            for trace in traces
        ],
        "seen": seen,
        "moments": moments,
        "spans": spans,
    }
    with open(os.environ["TRUTH_RECORD"], "w") as file:
        json.dump(record, file)


main_thread = threading.current_thread()
torch.cuda.memory._record_memory_history("all", context=None, max_entries=4_000_000)
watch_modules()
watch_optimizers()
watch_autograd()
watch_communication()
atexit.register(write)
