"""No function that NVIDIA's headers declare gives or takes memory past the table of hooks."""

import re

import pytest

import support
import traced

CONFIG = support.BUILD / "gen" / "config.mk"

# What obtains, gives back, maps, shares or ends memory, or leads to such a function, has one of these in its name.
SPEAKS_OF_MEMORY = re.compile(
    r"Malloc|Alloc|Free|MemPool|MemCreate|MemRelease|MemRetain|MemMap|MemUnmap|MemAddress|ShareableHandle|Pointer$"
    r"|ArrayCreate|Array3DCreate|ArrayDestroy|HostRegister|HostUnregister|IpcOpenMem|IpcCloseMem|IpcGetMem|"
    r"ExternalMemory|Multicast(Create|Bind|Unbind|AddDevice)|ModuleLoad|ModuleUnload|LibraryLoad|LibraryUnload|GetGlobal"
    r"|GetManaged|CtxCreate|CtxDestroy|CtxDetach|PrimaryCtx(Retain|Release|Reset)|DeviceReset|GraphInstantiate"
    r"|GraphLaunch|GraphExecDestroy|GraphDestroy|GraphAddNode|GraphMemTrim|BeginCapture|EndCapture|GetProcAddress"
    r"|DriverEntryPoint|SymbolAddress"
)

# And these do nothing of the kind: they ask or set; or they are the runtime's and reach memory by functions of the
# driver that are in the table.
HARMLESS = re.compile(
    r"Get(Params|Attributes?|Access|Flags|AllocationGranularity)$|PropertiesFromHandle$|SetParams$|SetAttribute$"
    r"|Get(Device)?Pointer$|MappedPointer$|cudaMemPoolSetAccess|^cuda(Graph(Instantiate|Destroy|AddNode)|Library)"
)

# Neither, and not in the table:
LEFT_OUT = {
    "cuCtxDetach",  # ends a context at the last of several cuCtxAttach; not for use since CUDA 4
    "cuGraphDestroyNode",  # refuses graphs with nodes that allocate
}


def include_folders():
    found = dict(line.split(" := ") for line in CONFIG.read_text().splitlines() if " := " in line)
    return {name: support.ROOT / found[name].strip() for name in ("CUDA_INCLUDE", "CUDA12_INCLUDE")}


def declared(folder):
    """The functions that a CUDA's two headers declare, by the names that they have there."""
    names = set()
    for header, pattern in (
        ("cuda.h", r"CUDAAPI\s+(cu[A-Z]\w+)\s*\("),
        ("cuda_runtime_api.h", r"CUDARTAPI_?\w*\s+(cuda[A-Z]\w+)\s*\("),
    ):
        with open(folder / header, encoding="utf-8", errors="replace") as file:
            names |= set(re.findall(pattern, file.read()))
    return names


def bare(name):
    return re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", name)


@pytest.mark.parametrize("variable", ["CUDA_INCLUDE", "CUDA12_INCLUDE"])
def test_what_gives_or_takes_memory_in_nvidia_s_headers_is_in_the_table(variable):
    if not CONFIG.exists():
        pytest.skip("no configured build")
    names = declared(include_folders()[variable])
    assert {"cuMemAlloc", "cudaMalloc", "cuMemCreate"} <= {bare(name) for name in names}
    table = {bare(row.symbol) for row in traced.hook_rows()}
    past_us = {
        name
        for name in names
        if SPEAKS_OF_MEMORY.search(name) and not HARMLESS.search(name) and bare(name) not in table
    }
    assert past_us == LEFT_OUT & names, sorted(past_us ^ (LEFT_OUT & names))

