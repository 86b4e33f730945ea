#!/usr/bin/env python3
"""Runs the unit tests, then the integration tests, and ends with `N passed, N failed, N skipped`.

Usage: run-tests.py [--build DIR] [--unit-only] [-- pytest arguments]

A unit test is a program under DIR/tests/unit: one of cmocka, whose XML is counted test by test, or
any other that exits with 0 (passed), 77 (skipped) or something else (failed). One that dies or
hangs is a failure.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNIT_TIMEOUT_S = 1200
SKIPPED = 77
MAX_WORKERS = 4


def count_xml(path):
    """Outcomes in a JUnit file, of pytest or of cmocka, and the failures in words."""
    outcomes, failures = Counter(), []
    # A test that ran twice stands there twice; the last counts.
    cases = {(case.get("classname"), case.get("name")): case
             for case in ElementTree.parse(path).getroot().iter("testcase")}
    for case in cases.values():
        wrong = [part for part in case if part.tag in ("failure", "error")]
        if wrong:
            outcomes["failed"] += 1
            failures.append((case.get("name"), (wrong[0].text or "").strip()))
        elif case.find("skipped") is not None:
            outcomes["skipped"] += 1
        else:
            outcomes["passed"] += 1
    return outcomes, failures


def run_unit(program, folder):
    """Runs one unit test; returns its outcomes and prints what failed."""
    xml = folder / f"{program.name}.xml"
    env = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "xml", "CMOCKA_XML_FILE": str(folder / "%g.xml")}
    began = time.monotonic()
    try:
        result = subprocess.run(
            [program],
            env=env,
            cwd=ROOT,
            timeout=UNIT_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        status, output = result.returncode, result.stdout + result.stderr
    except subprocess.TimeoutExpired:
        status, output = f"none after {UNIT_TIMEOUT_S} s", ""
    seconds = time.monotonic() - began

    outcomes, failures = Counter(), []
    for xml in sorted(folder.glob("*.xml")):
        found, wrong = count_xml(xml)
        outcomes += found
        failures += wrong
        xml.unlink()
    if not outcomes and status in (0, SKIPPED):
        outcomes["passed" if status == 0 else "skipped"] = 1
    elif status not in (0, SKIPPED) and not outcomes["failed"]:
        outcomes["failed"] += 1
        failures.append((program.name, f"exit status {status}\n{output[-4000:]}"))

    print(f"  {program.name:<32} {in_words(outcomes)} ({seconds:.1f} s)", flush=True)
    if outcomes["skipped"] and output:
        print("    " + output.strip().replace("\n", "\n    "))
    for name, text in failures:
        print(f"    FAILED {name}\n      " + text.replace("\n", "\n      "), flush=True)
    return outcomes


def run_units(build):
    programs = sorted(
        path
        for path in (build / "tests" / "unit").glob("test_*")
        if path.is_file() and os.access(path, os.X_OK) and not path.suffix
        and (ROOT / "tests" / "unit" / f"{path.name}.c").exists()
    )
    print(f"unit tests: {len(programs)} programs", flush=True)
    outcomes = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            outcomes += run_unit(program, pathlib.Path(folder))
    return outcomes


def run_integration(build, arguments):
    print("integration tests", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        xml = pathlib.Path(folder) / "pytest.xml"
        workers = min(os.cpu_count() or 1, MAX_WORKERS)
        command = [ROOT / ".venv/bin/python", "-m", "pytest", "-c", ROOT / "tests/pytest.ini"]
        command += ["--rootdir", ROOT / "tests", "-q", "-n", str(workers), f"--junitxml={xml}"]
        # In pytest's own place the folders of a long run go when three others have begun.
        command += ["--basetemp", build / "pytest"]
        status = subprocess.run(
            [*command, *arguments],
            env={
                **os.environ,
                "MEMTRACE_BUILD": str(build),
                "PYTHONDONTWRITEBYTECODE": "1",
                "TMPDIR": folder,  # what programs under test leave goes with it
            },
            cwd=ROOT / "tests",
            stdin=subprocess.DEVNULL,
        ).returncode
        outcomes = count_xml(xml)[0] if xml.exists() else Counter()
    # 0: all passed, 1: some failed (counted), 5: no test was found.
    if status not in (0, 5) and not outcomes["failed"]:
        print(f"pytest itself failed: exit status {status}")
        outcomes["failed"] += 1
    return outcomes


def in_words(outcomes):
    return ", ".join(f"{outcomes[kind]} {kind}" for kind in ("passed", "failed", "skipped"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--unit-only", action="store_true")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    build = options.build.absolute()

    outcomes = run_units(build)
    if not options.unit_only:
        outcomes += run_integration(build, options.pytest)
    print(in_words(outcomes), flush=True)
    ran = sum(outcomes.values())
    return 1 if outcomes["failed"] or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
