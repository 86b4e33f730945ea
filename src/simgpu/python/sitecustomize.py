"""Small whole numbers and truth values of PyTorch on the simulated GPU, computed on the CPU.

A Python that finds this folder in PYTHONPATH runs this file when it starts (module `site`). Nothing
happens until the program has imported torch. From then on every operator of the threads that began
after it runs as it would, on the simulated GPU; where all that it gives is small and of whole
numbers or truth values, the same operator runs on the CPU too, on what the simulated memory holds,
and the result is put into that memory. So masks, lengths, counts and stop flags are right as far as
they do not depend on what a kernel computes in floating point, which reads as zeros.

With SIMGPU_VALUES=objects this is so only inside PyTorch's functions by which ranks exchange objects.

Not done: random operators, results above 1 MiB, operators that compiled code calls by itself.
"""

import functools
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Ranks first tell each other how long their pickled objects are.
OBJECTS = ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list", "send_object_list",
           "recv_object_list")
SMALL_BYTES = 1 << 20  # the simulated memory keeps no more (DRIVER_SHADOW_BYTES)


def run_next_sitecustomize():
    """The one that this one hides, if there is one."""
    for folder in sys.path:
        path = os.path.join(folder or ".", "sitecustomize.py")
        if os.path.abspath(folder or ".") == HERE or not os.path.isfile(path):
            continue
        spec = importlib.util.spec_from_file_location("sitecustomize", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        return


def open_memory():
    """Functions that read and write simulated device memory, or None where there is none."""
    import ctypes

    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(HERE), "libsimgpu-values.so"))
        read, write = library.simgpu_values_read, library.simgpu_values_write
    except (OSError, AttributeError):
        return None
    for function in (read, write):
        function.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
    return read, write


def start(torch):
    memory = open_memory()
    if memory is None or not torch.version.cuda:
        return
    read, write = memory
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    random = getattr(torch.Tag, "nondeterministic_seeded", None)
    plain = (torch.Tensor, torch.nn.Parameter)
    indexing = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
    truths = (torch.bool, torch.uint8)
    between_ranks = ("c10d", "_c10d_functional", "symm_mem")  # right without us: libnccl does them

    def is_on_gpu(value):
        return type(value) in plain and value.device.type == "cuda"

    def extent_bytes(tensor):
        """From its first element to its last."""
        steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        return (steps + 1) * tensor.element_size() if tensor.numel() else 0

    def is_small(tensor):
        return extent_bytes(tensor) <= SMALL_BYTES

    def is_exact(tensor):
        return not tensor.dtype.is_floating_point and not tensor.dtype.is_complex

    def load(tensor):
        """The extent as a CPU tensor of one dimension, and the tensor as a view of it."""
        count = extent_bytes(tensor) // tensor.element_size()
        flat = torch.zeros(count, dtype=tensor.dtype)
        if count:
            read(tensor.data_ptr(), flat.data_ptr(), count * tensor.element_size())
        return flat, flat.as_strided(tensor.shape, tensor.stride())

    def store(tensor, value):
        flat, view = load(tensor)
        view.copy_(value)
        if flat.numel():
            write(tensor.data_ptr(), flat.data_ptr(), flat.numel() * flat.element_size())

    def on_cpu(value):
        if isinstance(value, torch.device):
            return torch.device("cpu")
        return load(value)[1] if is_on_gpu(value) else value

    def is_view(function):
        """What comes back is memory of an argument as it is."""
        returns = [each.alias_info for each in function._schema.returns]
        return any(alias is not None and not alias.is_write for alias in returns)

    def results(function, args, kwargs, given):
        """All that it writes: arguments, then what it returns; also what is no tensor."""
        for place, argument in enumerate(function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                yield args[place] if place < len(args) else kwargs.get(argument.name)
        yield given

    def leaves(*trees):
        return pytree.tree_leaves(trees)

    def replace(given, right):
        """A result whose shape depends on values gets the one that they give."""
        if not is_on_gpu(given) or not isinstance(right, torch.Tensor) or given.shape == right.shape:
            return given
        return torch.empty(right.shape, dtype=right.dtype, device=given.device)

    def compute(function, args, kwargs, given):
        cpu_args, cpu_kwargs = pytree.tree_map(on_cpu, (args, kwargs))
        right = function(*cpu_args, **cpu_kwargs)
        if isinstance(given, (torch.Tensor, tuple, list)):
            given = pytree.tree_map(replace, given, right)
        targets = leaves(*results(function, args, kwargs, given))
        values = leaves(*results(function, cpu_args, cpu_kwargs, right))
        for target, value in zip(targets, values):
            if is_on_gpu(target) and is_exact(target) and is_small(target):
                store(target, value)
        return given

    def complain(function, error, said=set()):
        if function not in said:
            said.add(function)
            print(f"simgpu: {function} reads as zeros: {error}", file=sys.stderr)

    def is_known(function, args, kwargs, given):
        if is_view(function) or random in function.tags or function.namespace in between_ranks:
            return False
        targets = [each for each in leaves(*results(function, args, kwargs, given)) if is_on_gpu(each)]
        if not any(is_exact(each) for each in targets):
            return False
        tensors = [each for each in leaves(args, kwargs) if isinstance(each, torch.Tensor)]
        return all(type(each) in plain and is_small(each) for each in [*tensors, *targets])

    def with_places(args):
        """Masks as index tensors: a mask is looked at inside the operator, where nobody sees it."""
        if not any(is_on_gpu(each) and each.dtype in truths and is_small(each) for each in args[1]):
            return args
        places = []
        for index in args[1]:
            if is_on_gpu(index) and index.dtype in truths and is_small(index):
                for right in load(index)[1].nonzero().unbind(1):
                    place = torch.empty(right.shape, dtype=torch.int64, device=index.device)
                    store(place, right)
                    places.append(place)
            else:
                places.append(index)
        return (args[0], places, *args[2:])

    class Values(TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True  # compilation goes on as without it

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # the wrapper that skips it would stand in all stacks

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if function in indexing:
                args = with_places(args)
            given = function._op(*args, **kwargs)
            if is_known(function, args, kwargs, given):
                try:
                    given = compute(function, args, kwargs, given)
                except Exception as error:  # it is the simulation's fault, not the program's
                    complain(function, error)
            return given

    def with_values(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with Values():
                return function(*args, **kwargs)

        return call

    if os.environ.get("SIMGPU_VALUES") != "objects":
        Values().__enter__()
        return
    for module in ("torch.distributed", "torch.distributed.distributed_c10d"):
        for name in OBJECTS:
            function = getattr(sys.modules.get(module), name, None)
            if function is not None:
                setattr(sys.modules[module], name, with_values(function))


class AfterImport:
    """A finder that lets the import of torch run as it is, and then starts."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_start(module):
                execute(module)
                start(module)

            spec.loader.exec_module = execute_and_start
        return spec


run_next_sitecustomize()
sys.meta_path.insert(0, AfterImport())
