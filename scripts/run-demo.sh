#!/bin/bash
# Usage: run-demo.sh BUILD
#
# Traces examples/train_gpt.py twice with real PyTorch: a run that fits, and one that runs out of
# memory. On a GPU where there is one that PyTorch can use, else on the simulated one, as a card of
# 8 GiB. What the runs leave is in BUILD/demo.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
out=$build/demo
library=$build/libmemtrace.so
tool=$build/memtrace
card_memory=8GiB
rm -rf "$out"
mkdir -p "$out"

title() {
    printf '\n== %s\n\n' "$*"
}

# find_gpu: prints a Python whose PyTorch can use a real GPU of this machine.
find_gpu() {
    local python
    [ -e /dev/nvidia0 ] || nvidia-smi -L 2>/dev/null | grep -q '^GPU' || return 1
    for python in ${PYTHON:-} python3 .venv/bin/python; do
        if "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' \
            2>/dev/null; then
            echo "$python"
            return 0
        fi
    done
    echo "There is a GPU here, but no PyTorch with NVIDIA's libraries: simulating one." >&2
    return 1
}

# train NAME ARGUMENT...: one traced run; returns the program's status. Its errors stay in NAME.stderr.
# When PyTorch's own threads abort it at its exit, as they do now and then without memtrace too, it
# runs once more.
train() {
    local name=$1 status=0
    train_once "$@" 2>"$out/$name.stderr" || status=$?
    if [ $status = 134 ] &&
        grep -q 'terminate called without an active exception' "$out/$name.stderr"; then
        status=0
        rm -f "$out/$name".*
        train_once "$@" 2>"$out/$name.stderr" || status=$?
    fi
    cat "$out/$name.stderr" >&2
    return $status
}

train_once() {
    local name=$1 variables=("${gpu[@]}")
    shift
    if [ -e "$library" ]; then
        variables+=("LD_PRELOAD=$library" "MEMTRACE_OUTPUT=$out/$name.mtrace")
    else
        echo "$library is not built: the run is not traced."
    fi
    echo "\$ ${variables[*]} $python examples/train_gpt.py $*"
    echo
    env "${variables[@]}" "$python" examples/train_gpt.py "$@"
}

if python=$(find_gpu); then
    gpu=()
    too_large=4096
else
    [ -e "$build/libmemtrace-sim/libcuda.so.1" ] || {
        echo "memtrace: $build/libmemtrace-sim is not built" >&2
        exit 1
    }
    gpu=("SIMGPU_MEMORY=$card_memory" "LD_LIBRARY_PATH=$build/libmemtrace-sim")
    python=.venv/bin/python
    too_large=32
fi
export PYTHONDONTWRITEBYTECODE=1

title "1. A training run that fits"
train train --batch 4

title "2. The same with --batch $too_large, which does not fit"
if train oom --batch $too_large; then
    echo "memtrace: the second run was to end in torch.OutOfMemoryError, but did not" >&2
    exit 1
fi
grep -q OutOfMemoryError "$out/oom.stderr" || {
    echo "memtrace: the second run failed for another reason than memory" >&2
    exit 1
}

if [ -x "$tool" ] && [ -e "$out/oom.mtrace" ]; then
    question=(report --by stack --limit 6)
    "$tool" help 2>/dev/null | grep -qE '^ +oom ' && question=(oom)
    title "3. Asking the trace of the second run"
    echo "\$ $tool ${question[*]} $out/oom.mtrace"
    echo
    "$tool" "${question[@]}" "$out/oom.mtrace" || [ $? = 1 ] # 1: the answer is "no", not an error
fi
title "Left in $out"
(cd "$out" && ls -sh --block-size=KiB)
