#!/bin/bash
# Usage: run-fuzz.sh BUILD SECONDS
#
# Runs each fuzzer BUILD/fuzz/fuzz_* for SECONDS, and those that are scripts. The seeds are
# tests/fuzz/corpus/NAME, the golden files, and what a fuzzer writes itself; what it finds stays in
# BUILD/fuzz/corpus, inputs that crash in BUILD/fuzz/crashes.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
seconds=${2:-20}
if ! command -v clang >/dev/null; then
    echo "memtrace: fuzzing needs clang (Debian: apt install clang)" >&2
    exit 1
fi
failed=0
shopt -s nullglob
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    corpus=$build/fuzz/corpus/$name
    seeds=()
    for folder in "tests/fuzz/corpus/$name" tests/golden; do
        [ -d "$folder" ] && seeds+=("$folder")
    done
    mkdir -p "$corpus" "$build/fuzz/crashes"
    if [ "$name" = fuzz_symbols ]; then # small libraries of the tests, and of the simulated GPU
        cp -u "$build"/tests/programs/runpath/inner/*.so "$build"/libmemtrace-sim/libcufile.so.0 "$corpus" 2>/dev/null || true
    fi
    if grep -q WRITE_SEEDS "$source"; then
        FUZZ_SEEDS=$corpus "$build/fuzz/$name"
    fi
    echo "== $name, $seconds s"
    "$build/fuzz/$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$build/fuzz/crashes/$name-" \
        "$corpus" "${seeds[@]}" || failed=1
done
for source in tests/fuzz/fuzz_*.py; do
    echo "== $(basename "$source" .py), $seconds s"
    python3 "$source" "$seconds" || failed=1
done
exit $failed
