#!/bin/bash
# Usage: run-bench.sh BUILD [PART...]
#
# Measures what memtrace costs and prints one table (tests/bench/bench.py; BENCH=short for a quick
# look). Here the things are built that it runs under memtrace: stand-ins for CUDA and PyTorch that
# do nearly nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
[ $# = 0 ] || shift
case $build in /*) ;; *) build=$PWD/$build ;; esac
out=$build/tests/bench/stand-in
mkdir -p "$out"

compile() {
    ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra "$@" -lpthread -ldl
}

traced=tests/bench/traced
compile -fPIC -shared -Wl,-soname,libcuda.so.1 -o "$out/libcuda.so.1" tests/programs/fastcuda/libcuda.c
compile -fPIC -shared -Wl,-soname,libc10.so -o "$out/libc10.so" $traced/c10.c
compile -fPIC -shared -o "$out/toggle.so" $traced/toggle.c
compile -fPIC -shared -DBEHIND -o "$out/toggle-behind.so" $traced/toggle.c "$out/toggle.so"
compile -fPIC -shared -o "$out/libpairs.so" $traced/pairs.c "$out/libcuda.so.1" "$out/libc10.so"
compile -o "$out/pairs" $traced/pairs.c "$out/libcuda.so.1" "$out/libc10.so"

MEMTRACE_BUILD=$build PYTHONDONTWRITEBYTECODE=1 .venv/bin/python tests/bench/bench.py "$@"
