#!/usr/bin/env python3
"""List what installed packages import from the CUDA libraries, one table per soname.

    scripts/list-cuda-imports.py SITE-PACKAGES/torch [OTHER-PACKAGE ...]

reads every shared object below the given folders and adds the CUDA names they import to the tables
in src/simgpu/exports/ (or --exports FOLDER).  Lines already there, aliases and comments included,
are kept: the tables are the union of all the wheels they were ever made from, and of what people
wrote.  --check writes nothing and exits 1 when a name is absent.

Table format: see src/simgpu/README.md.
"""

import argparse
import os
import re
import subprocess
import sys

# Prefix of an imported name -> base name of the library that exports it.  First match wins.
PREFIXES = [
    ("__cuda", "libcudart"),
    ("cuda", "libcudart"),
    ("cublasLt", "libcublasLt"),
    ("cublas", "libcublas"),
    ("cudnn", "libcudnn"),
    ("nccl", "libnccl"),
    ("pnccl", "libnccl"),
    ("cusparseLt", "libcusparseLt"),
    ("cusparse", "libcusparse"),
    ("cusolver", "libcusolver"),
    ("cufft", "libcufft"),
    ("curand", "libcurand"),
    ("cufile", "libcufile"),
    ("cuFile", "libcufile"),
    ("cupti", "libcupti"),
    ("nvrtc", "libnvrtc"),
    ("nvshmem", "libnvshmem_host"),
    ("nvJitLink", "libnvJitLink"),
    ("__nvJitLink", "libnvJitLink"),
    ("nvml", "libnvidia-ml"),
    ("nvtx", "libnvToolsExt"),
]
DRIVER_NAME = re.compile(r"^cu[A-Z]")  # cuMemAlloc is the driver's, cublasCreate is not
TABLE_LINE = re.compile(r"^(?P<name>\w+)(?:\s+(?P<node>[^\s=#]+))?")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def library_of(name):
    """Base name of the CUDA library that exports `name`, or None."""
    for prefix, library in PREFIXES:
        if name.startswith(prefix) and len(name) > len(prefix):
            return library
    return "libcuda" if DRIVER_NAME.match(name) else None


def is_shared_object(path):
    if ".so" not in os.path.basename(path) or os.path.islink(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def shared_objects(folder):
    for root, _, files in sorted(os.walk(folder)):
        for file in sorted(files):
            path = os.path.join(root, file)
            if is_shared_object(path):
                yield path


def needed_sonames(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))


def cuda_imports(path):
    """Yield (name, version node or '', library) for every CUDA name that `path` imports."""
    for line in run("nm", "-D", "--undefined-only", path).splitlines():
        name, _, node = line.split()[-1].partition("@")
        library = library_of(name)
        if library:
            yield name, node.strip("@"), library


def soname_base(soname):
    return soname.split(".so")[0]


def is_cuda_library(soname):
    return soname_base(soname) in {"libcuda", *(library for _, library in PREFIXES)}


def collect(folder, tables):
    """Add the imports of every object below `folder` to `tables`: soname -> {name: node}.

    A library that is only named, and of which nothing is imported, gets an empty table: the loader
    wants the file all the same.
    """
    objects = [(path, needed_sonames(path)) for path in shared_objects(folder)]
    anywhere = {}
    for _, sonames in objects:
        for soname in filter(is_cuda_library, sonames):
            anywhere[soname_base(soname)] = soname
            tables.setdefault(soname, {})
    for path, sonames in objects:
        own = {soname_base(s): s for s in sonames}
        for name, node, library in cuda_imports(path):
            soname = own.get(library) or anywhere.get(library)
            if soname is None:
                print(f"{path}: {name} comes from no library it names", file=sys.stderr)
                continue
            tables[soname][name] = node


def read_table(path):
    """Return (lines, {name: node}) of an existing table."""
    if not os.path.exists(path):
        return [], {}
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    known = {}
    for line in lines:
        match = TABLE_LINE.match(line)
        if match:
            known[match["name"]] = match["node"] or ""
    return lines, known


def sorted_table(lines):
    comments = [line for line in lines if line.startswith("#")]
    entries = {line for line in lines if line.strip() and not line.startswith("#")}
    return comments + sorted(entries)


def add_to_table(path, imports):
    """Add the absent names to the table at `path`; return those names."""
    lines, known = read_table(path)
    absent = {name: node for name, node in imports.items() if name not in known}
    for name, node in imports.items():
        if known.get(name, node) != node:
            print(f"{path}: {name} stands under '{known[name]}', imported '{node}'",
                  file=sys.stderr)
    lines += [f"{name} {node}".rstrip() for name, node in absent.items()]
    return sorted_table(lines), sorted(absent)


def default_exports():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(here, os.pardir, "src", "simgpu", "exports")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="PACKAGE-FOLDER")
    parser.add_argument("--exports", default=default_exports(), metavar="FOLDER")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on a new name")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    tables = {}
    for folder in arguments.folders:
        collect(folder, tables)
    absent_count = 0
    for soname, imports in sorted(tables.items()):
        path = os.path.join(arguments.exports, soname + ".txt")
        lines, absent = add_to_table(path, imports)
        absent_count += len(absent)
        if absent:
            print(f"{soname}: {len(imports)} imported, {len(absent)} new")
        if (absent or not os.path.exists(path)) and not arguments.check:
            with open(path, "w", encoding="ascii") as file:
                file.writelines(line + "\n" for line in lines)
    return 1 if arguments.check and absent_count else 0


if __name__ == "__main__":
    sys.exit(main())
