#!/bin/bash
# Usage: fetch-clients.sh NAME...
#
# Puts what scripts/clients/NAME.txt lists into .venv/clients/NAME/site-packages: programs beside PyTorch that use
# a GPU, each in a folder of its own, because some change what the others do (PyTorch compiles when it finds
# Triton). Does nothing for a name whose list has not changed. Without NVIDIA's libraries: --no-deps. A client that
# cannot be had is left out, and its tests skip. Needs the environment .venv (setup.sh demo).
#
# NAME.debian instead: packages of Debian sid, for programs that PyPI has not built; unpacked into
# .venv/clients/NAME/root. They are of the day they were fetched: sid keeps no old ones.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
. scripts/debian-suite.sh

python=$(find_python)
clients=.venv/clients

# from_pypi NAME FOLDER
from_pypi() {
    local specs
    specs=$(listed_specs "scripts/clients/$1.txt") || return 1
    mkdir -p .venv/tmp
    # shellcheck disable=SC2086 # one word a package
    TMPDIR=$PWD/.venv/tmp "$python" -m pip --python .venv/bin/python install --quiet --no-deps --no-cache-dir \
        --disable-pip-version-check --root-user-action ignore --target "$2/site-packages" $specs
}

# from_debian NAME FOLDER
from_debian() {
    local apt=$PWD/$2/apt mirror
    mirror=$(find_mirror) && [ -n "$mirror" ] || return 1
    # shellcheck disable=SC2046 # one word a package
    { open_suite "$mirror" sid main contrib && unpack_packages "$PWD/$2/root" $(listed "scripts/clients/$1.debian"); } \
        >/dev/null 2>&1 || return 1
    rm -rf "$apt"
}

install_client() {
    local list=scripts/clients/$1.txt place=$clients/$1 from=from_pypi
    [ -e "$list" ] || { list=scripts/clients/$1.debian && from=from_debian; }
    cmp -s "$list" "$place/list.txt" && return
    say "$1, a client for the tests"
    rm -rf "$place" "$place.new"
    mkdir -p "$place.new"
    $from "$1" "$place.new" || return 1
    cp "$list" "$place.new/list.txt"
    mv "$place.new" "$place"
}

for name; do
    install_client "$name" || say "$name is not to be had: its tests will skip"
done
rm -rf .venv/tmp
