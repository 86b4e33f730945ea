"""Measures what no attribute of a card tells, for `memtrace profile-card`: what its context and the first use of each
library take, and cuDNN's workspaces for some convolutions. Prints lines for a card's file.

The card must be idle: what other programs take or give back meanwhile is counted too. Without PyTorch only the context
is measured. NVML tells what is in use before there is a context; without it the context is all that is in use after.
"""

import ctypes
import signal
import statistics
import sys

LIMIT_SEEN = 2  # a workspace that so many convolutions share, and none exceeds, is cuDNN's limit


def fail(words):
    print(f"memtrace: profile-card: {words}", file=sys.stderr)
    sys.exit(1)


def say(words):
    print(f"# {words}")


# ---- the driver ---------------------------------------------------------------------------------


class Driver:
    """The device that PyTorch calls 0, by libcuda.so.1 alone."""

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            fail("there is no NVIDIA driver in this machine (no libcuda.so.1)")
        self.device = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)

    def call(self, name, *arguments):
        error = getattr(self.cuda, name)(*arguments)
        if error:
            fail(f"{name} failed: CUDA error {error}")

    def make_context(self):
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def used_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value

    def version(self):
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def nvml_used(driver):
    """A function that tells what is in use on the device, without a context; None where there is no NVML."""
    text, handle = ctypes.create_string_buffer(32), ctypes.c_void_p()
    driver.call("cuDeviceGetPCIBusId", text, len(text), driver.device)
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByPciBusId_v2(text, ctypes.byref(handle)):
        return None

    def used():
        memory = Memory()
        nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        return memory.used

    return used


def measure_context(driver):
    used = nvml_used(driver)
    before = used() if used else 0
    driver.make_context()
    if used:
        return used() - before
    say("no NVML here: the context is all that is in use, other programs' memory included")
    return driver.used_bytes()


# ---- libraries ----------------------------------------------------------------------------------


def first_uses(torch):
    """Name and first use of each, in an order in which none uses a later one. What they work on is made here, so that
    its kernels are not counted with a library's."""
    ones = torch.ones(64, 64, device="cuda")
    halves = ones.half()
    picture = torch.ones(2, 8, 16, 16, device="cuda")
    window = torch.ones(8, 8, 3, 3, device="cuda")
    positive = torch.eye(64, device="cuda")
    rows = torch.tensor([0, 1, 2]).cuda(), torch.tensor([0, 1]).cuda(), torch.tensor([1.0, 1.0]).cuda()
    sparse = torch.sparse_csr_tensor(*rows, (2, 2), check_invariants=False)
    return {
        "cublas": lambda: torch.mm(ones, ones),
        "cublaslt": lambda: torch.nn.functional.linear(halves, halves, halves[0]),
        "cudnn": lambda: torch.nn.functional.conv2d(picture, window),
        "cufft": lambda: torch.fft.fft(ones),
        "cusolver": lambda: torch.linalg.cholesky_ex(positive),
        "cusparse": lambda: sparse @ ones[:2],
    }


def outside_pytorch(torch, driver):
    torch.cuda.synchronize()
    return driver.used_bytes() - torch.cuda.memory_reserved()


def measure_first_uses(torch, driver):
    """The first tensor is there: what is in use then is the context."""
    torch.empty(1, device="cuda")
    before = outside_pytorch(torch, driver)
    uses = first_uses(torch)
    told = {"kernels": outside_pytorch(torch, driver) - before}
    for name, use in uses.items():
        before = outside_pytorch(torch, driver)
        try:
            use()
        except RuntimeError as error:
            say(f"{name} was not measured: {str(error).splitlines()[0]}")
            continue
        told[name] = outside_pytorch(torch, driver) - before
    for name, taken in told.items():
        print(f"first_{name} = {max(taken, 0)}")


# ---- cuDNN's workspaces -------------------------------------------------------------------------

# Images and channels of the result, with a window of 3 x 3; some are large enough to meet a limit.
CONVOLUTIONS = [((8, 64, 56, 56), 64), ((32, 64, 56, 56), 128), ((16, 256, 28, 28), 256), ((8, 512, 14, 14), 512),
                ((32, 64, 112, 112), 64), ((64, 64, 112, 112), 64), ((96, 64, 112, 112), 64), ((2, 1024, 14, 14), 1024)]


def added_bytes(torch, work):
    """What PyTorch asked for at most during `work`, beyond what it holds after."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = work()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    del result
    return stats["requested_bytes.all.peak"] - stats["requested_bytes.all.current"]


def directions(torch, image, window):
    """Name, work, and the bytes that its workspace is told by."""
    shape = (image.shape[0], window.shape[0], *image.shape[2:])
    given = torch.empty(shape, device="cuda", dtype=image.dtype)
    plain = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)

    def backward(*mask):
        return torch.ops.aten.convolution_backward(given, image, window, *plain, list(mask))

    yield "conv_forward", lambda: torch.nn.functional.conv2d(image, window, padding=1), image.nbytes
    yield "conv_backward_data", lambda: backward(True, False, False), image.nbytes
    yield "conv_backward_filter", lambda: backward(False, True, False), window.nbytes


def convolution_rows(torch):
    for dtype in (torch.float32, torch.float16):
        for shape, channels in CONVOLUTIONS:
            image = torch.empty(shape, device="cuda", dtype=dtype)
            window = torch.empty(channels, shape[1], 3, 3, device="cuda", dtype=dtype)
            for name, work, base in directions(torch, image, window):
                work()
                workspace = added_bytes(torch, work)
                say(f"{name} {'x'.join(map(str, shape))} to {channels}, {dtype}: {workspace} B")
                yield name, workspace, base


def measure_convolutions(torch):
    rows = list(convolution_rows(torch))
    sizes = [workspace for _, workspace, _ in rows]
    limit = max(sizes)
    is_limit = sizes.count(limit) >= LIMIT_SEEN
    for name in dict.fromkeys(name for name, _, _ in rows):
        shares = [1000 * workspace / base for other, workspace, base in rows
                  if other == name and not (is_limit and workspace == limit)]
        if shares:
            print(f"{name} = {statistics.median_low(round(share) for share in shares)}")
    print(f"conv_limit = {limit}")


# ---- all ----------------------------------------------------------------------------------------


def find_torch():
    try:
        import torch
    except ImportError as error:
        say(f"only the context was measured: PyTorch cannot be imported ({str(error).splitlines()[0]})")
        return None
    if not torch.cuda.is_available():
        say(f"only the context was measured: PyTorch {torch.__version__} cannot use the card")
        return None
    return torch


def main():
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback
    driver = Driver()
    context = measure_context(driver)
    torch = find_torch()
    print(f"context = {context}")
    print("context_spread = 32MiB")
    print(f"context_source = memtrace profile-card; CUDA {driver.version()}")
    if torch:
        say(f"PyTorch {torch.__version__}; cuDNN {torch.backends.cudnn.version()}")
        measure_first_uses(torch, driver)
        measure_convolutions(torch)


main()
