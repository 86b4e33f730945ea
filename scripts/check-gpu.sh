#!/bin/bash
# Usage: check-gpu.sh [--simulated] [BUILD]
#
# On a machine with a real GPU: runs programs under memtrace and compares what it says with what the
# device says. Exit status 0: all agree; 1: something does not; 77: there is no GPU here. With
# --simulated on the simulated GPU, to test this script.
set -euo pipefail
cd "$(dirname "$0")/.."

simulated=
[ "${1:-}" != --simulated ] || { simulated=yes && shift; }
build=$(realpath -m "${1:-build}")
tool=$build/memtrace
out=$build/check-gpu
limit_s=100 # a program
failed=0

if [ -n "$simulated" ]; then
    export LD_LIBRARY_PATH=$build/libmemtrace-sim SIMGPU_MEMORY=8GiB
elif ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    echo "check-gpu: no GPU here (nvidia-smi lists none): nothing was checked"
    exit 77
fi
[ -n "$simulated" ] || make -s all programs
rm -rf "$out"
mkdir -p "$out"

# row NAME RESULT WHAT: a line of the table.
row() {
    printf '%-22s %-8s %s\n' "$1" "$2" "$3"
    [ "$2" != differs ] || failed=1
}

# compare NAME: the last cuMemGetInfo and the last reading of NVML against what is tracked.
compare() {
    "$tool" dump --json --tracked "$out/$1.mtrace" >"$out/$1.events"
    "$tool" report --json "$out/$1.mtrace" >"$out/$1.json"
    python3 - "$out/$1.events" "$out/$1.json" <<'PYTHON'
import json
import sys

MIB = 1 << 20
report = json.load(open(sys.argv[2]))
notes, bad = [], False
for key in ("lost", "unknown_frees", "double_allocations", "disagreements"):
    if report["trace"].get(key):
        bad = True
        notes.append(f"{key} {report['trace'][key]}")
untracked = {"meminfo": [], "reading": []}
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event["what"] not in untracked or event["status"] or not event["tracked"]:
        continue
    tracked = {device["device"]: device["bytes"] for device in event["tracked"]}
    if event["device"] not in tracked:
        continue
    if event["what"] == "meminfo":
        used = event["total_bytes"] - event["bytes"]
    else:
        used = event["bytes"] or event["in_use_bytes"]
    untracked[event["what"]].append(used - tracked[event["device"]])
for what, values in untracked.items():
    if not values:
        notes.append(f"{what}: none")
        continue
    bad |= min(values) < 0  # less in use than we track
    notes.append(f"{what}: {len(values)}, untracked {min(values) // MIB}..{max(values) // MIB} MiB")
notes.append("CUPTI: " + (str(report["cupti"]) if report.get("cupti") else "not asked"))
print("differs" if bad else "agrees", "; ".join(notes))
PYTHON
}

# check NAME COMMAND...: runs it under memtrace; it must end as it does alone.
check() {
    local name=$1 status=0 answer
    shift
    [ -x "$1" ] || { row "$name" skipped "$1 is not there"; return; }
    timeout "$limit_s" env LD_PRELOAD="$build/libmemtrace.so" MEMTRACE_OUTPUT="$out/$name" \
        MEMTRACE_CHECK=cupti MEMTRACE_SUMMARY=file "$@" >"$out/$name.out" 2>&1 || status=$?
    if [ "$status" != 0 ]; then
        row "$name" differs "exit status $status, see $out/$name.out"
    elif [ ! -e "$out/$name.mtrace" ]; then
        row "$name" differs "left no trace"
    else
        answer=$(compare "$name")
        row "$name" "${answer%% *}" "${answer#* }"
    fi
}

printf '%-22s %-8s %s\n' program result "what the device says"
programs=$build/tests/programs
check pools "$programs/pools"
check readings "$programs/readings" 3
check mixture "$programs/mixture" 18
for python in ${PYTHON:-} .venv/bin/python; do
    check training "$python" examples/train_gpt.py --batch 1
    break
done
exit "$failed"
