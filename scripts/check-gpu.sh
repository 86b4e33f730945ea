#!/bin/bash
# Usage: check-gpu.sh [--simulated] [BUILD]
#
# On a machine with a real GPU: builds what can be built there, runs programs under memtrace, and compares what it
# tracks with what the device says is in use and with what CUPTI saw. At most six minutes. Exit status 0: all that ran
# agree; 1: something does not; 77: there is no GPU here, or nothing to run. With --simulated on the simulated GPU, to
# test this script. What the runs leave is in BUILD/check-gpu.
set -euo pipefail
cd "$(dirname "$0")/.."

simulated=
[ "${1:-}" != --simulated ] || { simulated=yes && shift; }
build=$(realpath -m "${1:-build}")
tool=$build/memtrace
out=$build/check-gpu
programs=$build/tests/programs
build_s=150
program_s=90
all_s=340
agree=0 differ=0 skipped=0

fail() {
    echo "check-gpu: $*"
    exit 77
}

# find_python CODE: prints a Python that ends well with CODE.
find_python() {
    local python
    for python in ${PYTHON:-} python3 .venv/bin/python; do
        if timeout 60 "$python" -c "$1" >/dev/null 2>&1; then
            echo "$python"
            return 0
        fi
    done
    return 1
}

if [ -n "$simulated" ]; then
    export LD_LIBRARY_PATH=$build/libmemtrace-sim SIMGPU_MEMORY=8GiB
    card="the simulated GPU"
    program_s=1000 all_s=4000 # whatever the machine
    trainer=.venv/bin/python
else
    card=$(nvidia-smi -L 2>/dev/null | sed -n 's/^GPU 0: \(.*\) (UUID.*/\1/p') || true
    [ -n "$card" ] || fail "no GPU here (nvidia-smi lists none): nothing was checked"
    echo "check-gpu: building, at most $build_s s"
    timeout "$build_s" make -s O="$build" lib tool programs >"$build/check-gpu.log" 2>&1 ||
        echo "check-gpu: the build failed (see $build/check-gpu.log); what was built before is used"
    for folder in /usr/local/cuda/extras/CUPTI/lib64 /usr/local/cuda/lib64; do
        [ ! -d "$folder" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
    done
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
    trainer=$(find_python 'import sys, torch; sys.exit(not torch.cuda.is_available())') || trainer=
fi
[ -x "$tool" ] || fail "memtrace is not built in $build: nothing was checked"
reader=$(find_python 'import json') || fail "no Python here to compare with: nothing was checked"
rm -rf "$out"
mkdir -p "$out"

# row NAME RESULT WHAT: a line of the table.
row() {
    printf '%-10s %-8s %s\n' "$1" "$2" "$3"
    case $2 in
    agrees) agree=$((agree + 1)) ;;
    differs) differ=$((differ + 1)) ;;
    *) skipped=$((skipped + 1)) ;;
    esac
}

# compare NAME SLACK: each cuMemGetInfo, each reading of NVML and CUPTI's count against what is tracked. SLACK: MiB by
# which what is untracked may change, where no code is loaded.
compare() {
    "$tool" dump --json --tracked "$out/$1.mtrace" >"$out/$1.events" &&
        "$tool" report --json "$out/$1.mtrace" >"$out/$1.json" &&
        "$reader" scripts/compare-with-device.py "$out/$1.events" "$out/$1.json" "$2" ||
        echo "differs the trace cannot be read, see $out"
}

# check NAME SLACK COMMAND...: runs it under memtrace; it must end well.
check() {
    local name=$1 slack=$2 status=0 answer left_s=$((all_s - SECONDS))
    shift 2
    [ "$left_s" -gt 10 ] || { row "$name" skipped "no time is left"; return; }
    command -v "$1" >/dev/null || { row "$name" skipped "$1 is not there"; return; }
    [ "$left_s" -lt "$program_s" ] || left_s=$program_s
    timeout -k 5 "$left_s" env LD_PRELOAD="$build/libmemtrace.so" MEMTRACE_OUTPUT="$out/$name" \
        MEMTRACE_CHECK=cupti MEMTRACE_SUMMARY=file "$@" >"$out/$name.out" 2>&1 || status=$?
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
        row "$name" skipped "still running after $left_s s, see $out/$name.out"
    elif [ "$status" != 0 ]; then
        row "$name" differs "exit status $status: $(tail -n 1 "$out/$name.out")"
    elif [ ! -e "$out/$name.mtrace" ]; then
        row "$name" differs "left no trace"
    else
        answer=$(compare "$name" "$slack")
        row "$name" "${answer%% *}" "${answer#* }"
    fi
}

printf '%-10s %-8s %s\n' program result "what the device says"
check card 128 "$programs/card"
check pools 128 "$programs/pools"
check readings 128 "$programs/readings" 0
if [ -n "$trainer" ]; then
    check training any "$trainer" examples/train_gpt.py --batch 1
else
    row training skipped "no Python here has a PyTorch that can use this GPU (set PYTHON=)"
fi
echo "check-gpu: $agree agree, $differ differ, $skipped skipped, in $SECONDS s, on $card"
[ $((agree + differ)) -gt 0 ] || exit 77
[ "$differ" = 0 ]
