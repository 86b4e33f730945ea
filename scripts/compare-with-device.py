#!/usr/bin/env python3
"""Compare a trace with what the device said meanwhile.

    compare-with-device.py EVENTS REPORT SLACK

EVENTS is `memtrace dump --json --tracked`, REPORT is `memtrace report --json`. Prints one line: "agrees" or
"differs", and why. What is in use less what is tracked is the context and the like: never below 0, and, unless SLACK
is "any", the same within SLACK MiB from first to last. CUPTI, where it was there, must have seen nothing more.
"""

import json
import sys

MIB = 1 << 20
UNSOUND = ("lost", "unknown_frees", "double_allocations", "disagreements")


def used_bytes(event):
    if event["what"] == "meminfo":
        return event["total_bytes"] - event["bytes"]
    return event["bytes"] or event["in_use_bytes"]  # this process's, or, where none are told apart, all


def untracked(events):
    """What was in use and not tracked, by who said so and of which device, in order."""
    found = {"meminfo": {}, "reading": {}}
    for event in events:
        if event["what"] not in found or event["status"]:
            continue
        tracked = {device["device"]: device["bytes"] for device in event["tracked"]}
        if event["device"] in tracked:
            device = found[event["what"]].setdefault(event["device"], [])
            device.append(used_bytes(event) - tracked[event["device"]])
    return found


def compare_readings(events, slack):
    notes, faults = [], []
    for who, name in (("meminfo", "cuMemGetInfo"), ("reading", "NVML")):
        devices = untracked(events)[who]
        if not devices:
            notes.append(f"{name}: not asked")
        for device, values in devices.items():
            low, high = min(values) / MIB, max(values) / MIB
            notes.append(f"{name}: {len(values)} times, untracked {low:.0f}..{high:.0f} MiB")
            if low < 0:
                faults.append(f"{name}: GPU {device}: {-low:.1f} MiB less in use than tracked")
            elif slack != "any" and high - low > int(slack):
                faults.append(f"{name}: GPU {device}: untracked memory changed by {high - low:.1f} MiB")
    return notes, faults


def compare_cupti(report):
    check = report.get("check")
    if check is None:
        return ["CUPTI: not there"], []
    notes = [f"CUPTI: {check['allocations']} allocations seen"]
    faults = [f"CUPTI saw, not we: {missed}" for missed in check["missed"]]
    if check["unconfirmed"]:
        faults.append(f"we saw, not CUPTI: {check['unconfirmed']}")
    if not check["complete"]:
        notes.append("CUPTI did not tell all")
    return notes, faults


def main():
    events = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    report = json.load(open(sys.argv[2], encoding="utf-8"))
    notes, faults = compare_readings(events, sys.argv[3])
    more_notes, more_faults = compare_cupti(report)
    faults += more_faults
    faults += [f"{key}: {report['trace'][key]}" for key in UNSOUND if report["trace"].get(key)]
    print("differs" if faults else "agrees", "; ".join(faults + notes + more_notes))


main()
