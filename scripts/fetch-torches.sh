#!/bin/bash
# Usage: fetch-torches.sh [VERSION...]
#
# Makes an environment of its own for each PyTorch of scripts/torches/VERSION.txt (all of them, if none is named),
# CACHE/torches/VERSION, with the model libraries of the tests and none of NVIDIA's; CACHE is $MEMTRACE_CACHE,
# ~/.cache/memtrace or .cache. The list of a version names what differs there from the tests' own environment.
# 0.5 to 0.9 GB to download and 1.5 to 2.5 GB installed, each. Does nothing for a version whose list has not changed.
# One that cannot be had is left out, and its tests skip.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

python=$(find_python)
torches=$(cache_dir)/torches

# add_packages PLACE ARGUMENT...: without what they require, which for torch is NVIDIA's libraries.
add_packages() {
    local place=$1
    shift
    mkdir -p "$place/tmp"
    TMPDIR=$place/tmp "$python" -m pip --python "$place/bin/python" install --quiet --no-deps --no-cache-dir \
        --disable-pip-version-check --root-user-action ignore "$@"
}

make_environment() {
    local list=scripts/torches/$1.txt place=$torches/$1 specs
    cmp -s "$list" "$place/list.txt" && return
    say "PyTorch $1 in an environment of its own"
    specs=$(listed_specs "$list") || return 1
    rm -rf "$place"
    "$python" -m venv --without-pip "$place" || return 1
    add_packages "$place" -r scripts/requirements-demo.txt -r scripts/requirements-check.txt || return 1
    # shellcheck disable=SC2086 # one word a package
    add_packages "$place" $specs || return 1
    rm -rf "$place/tmp"
    cp "$list" "$place/list.txt"
}

versions=("$@")
[ ${#versions[@]} -gt 0 ] || mapfile -t versions < <(basename -s .txt scripts/torches/*.txt)
for version in "${versions[@]}"; do
    make_environment "$version" || say "PyTorch $version is not to be had: its tests will skip"
done
