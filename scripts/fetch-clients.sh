#!/bin/bash
# Usage: fetch-clients.sh NAME...
#
# Puts what scripts/clients/NAME.txt lists into .venv/clients/NAME/site-packages: programs beside PyTorch that use
# a GPU, each in a folder of its own, because some change what the others do (PyTorch compiles when it finds
# Triton). Does nothing for a name whose list has not changed. Without NVIDIA's libraries: --no-deps. A client that
# cannot be had is left out, and its tests skip. Needs the environment .venv (setup.sh demo).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

python=$(find_python)
clients=.venv/clients

# specs_of NAME: what to install, a wheel in the shared cache or the name for pip to download.
specs_of() {
    local spec
    while read -r spec; do
        if is_cache_shared; then
            fetch_wheel "$spec"
        else
            echo "$spec"
        fi
    done < <(grep -v '^#' "scripts/clients/$1.txt")
}

install_client() {
    local list=scripts/clients/$1.txt place=$clients/$1 specs
    cmp -s "$list" "$place/list.txt" && return
    say "$1, a client for the tests"
    rm -rf "$place" "$place.new"
    specs=$(specs_of "$1") || return 1
    mkdir -p "$place.new" .venv/tmp
    # shellcheck disable=SC2086 # one word a package
    TMPDIR=$PWD/.venv/tmp "$python" -m pip --python .venv/bin/python install --quiet --no-deps --no-cache-dir \
        --disable-pip-version-check --root-user-action ignore --target "$place.new/site-packages" $specs || return 1
    cp "$list" "$place.new/list.txt"
    mv "$place.new" "$place"
}

for name; do
    install_client "$name" || say "$name is not to be had: its tests will skip"
done
rm -rf .venv/tmp
