"""What the device says is in use beyond what was traced: readings of NVML by the dump thread."""

import pytest

import support
import traced

MIB = 1 << 20
CONTEXT = 300 * MIB
MODULE = 7 * MIB
OTHERS = 1000 * MIB
TAKEN = 64 * MIB

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")


def run(folder, *arguments, **more):
    """Code has a size, and another process is there."""
    settings = {"SIMGPU_MODULE": "7MiB", "SIMGPU_OTHERS": "1000MiB", "SIMGPU_MEMORY": "2GiB"}
    program = traced.run(
        folder, "readings", *arguments, cuda=support.SIMGPU, **{**settings, **more}
    )
    assert program.status == 0, program.stderr
    return program


def readings(program):
    return [event for event in support.dump(program.trace) if event["what"] == "reading"]


def device_of(program):
    (device,) = program.report["devices"]
    return device


def test_untracked_memory_is_known_without_a_call_of_the_program(tmp_path):
    program = run(tmp_path, 3)
    device = device_of(program)
    assert device["reserved"]["current_bytes"] == TAKEN
    assert device["untracked_bytes"] == CONTEXT + 3 * MODULE
    assert device["untracked_has_other_processes"] is False
    assert device["other_processes_bytes"] == OTHERS
    assert device["in_use_bytes"] == TAKEN + CONTEXT + 3 * MODULE + OTHERS
    last = readings(program)[-1]
    assert (last["bytes"], last["in_use_bytes"], last["addr"], last["status"]) == (
        TAKEN + CONTEXT + 3 * MODULE,
        device["in_use_bytes"],
        2 << 30,
        0,
    )
    assert not [event for event in support.dump(program.trace) if event["what"] == "meminfo"]


def test_the_jumps_of_untracked_memory_add_up_and_are_named(tmp_path):
    history = device_of(run(tmp_path, 3))["untracked_history"]
    assert history[0]["before_bytes"] == 0
    assert history[-1]["after_bytes"] == CONTEXT + 3 * MODULE
    for jump, following in zip(history, history[1:]):
        assert jump["after_bytes"] == following["before_bytes"]
    assert sum(jump["modules"] for jump in history) == 3


def test_readings_agree_with_the_events_before_them(tmp_path):
    """Each, whenever it came, is the context, the code that was loaded and what is tracked."""
    program = run(tmp_path, "forks", SIMGPU_MODULE="0")
    events = support.dump(program.trace, "--tracked")
    exact = [event for event in events if event["what"] == "reading" and not event["status"]]
    assert exact
    for event in exact:
        (tracked,) = event["tracked"]
        assert event["bytes"] == tracked["bytes"] + CONTEXT, event


def test_in_a_container_only_the_device_as_a_whole_is_known(tmp_path):
    program = run(tmp_path, 1, SIMGPU_NVML="nopids")
    device = device_of(program)
    assert device["untracked_bytes"] == CONTEXT + MODULE + OTHERS
    assert device["untracked_has_other_processes"] is True
    assert device["other_processes_bytes"] is None
    assert "untracked when last read: context, kernels, others" in program.stderr


@pytest.mark.parametrize("setting", [{"SIMGPU_NVML": "off"}, {"MEMTRACE_NVML": "off"}])
def test_without_nvml_nothing_is_known_and_nothing_is_said(tmp_path, setting):
    program = run(tmp_path, 1, **setting)
    device = device_of(program)
    for key in ("untracked_bytes", "in_use_bytes", "other_processes_bytes", "untracked_history"):
        assert device[key] is None
    assert "untracked" not in program.stderr
    assert not readings(program)


def test_an_oom_tells_what_other_processes_hold(tmp_path):
    """It comes at once: what was read before it counts, if anything was."""
    program = run(tmp_path, 1, "oom")
    (oom,) = program.report["ooms"]
    assert oom["reserved_bytes"] == TAKEN
    assert program.stdout == "2\n"
    device = device_of(program)
    assert device["other_processes_bytes"] == OTHERS


def test_the_summary_has_a_row_for_each(tmp_path):
    text = run(tmp_path, 1).stderr
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "untracked: context, kernels 307 MiB 307 MiB" in rows
    assert "other processes, when last read 1000 MiB" in rows
    assert "in use on the device 1371 MiB 1371 MiB of 2048" in rows


def test_each_of_several_devices_is_read_without_a_question_of_the_program(tmp_path):
    """It has the driver alone and never asks who its devices are."""
    program = run(tmp_path, "two", SIMGPU_DEVICES="3", SIMGPU_OTHERS="0", CUDA_DEVICE_ORDER=None)
    untracked = {device["device"]: device["untracked_bytes"] for device in program.report["devices"]}
    assert untracked == {0: CONTEXT, 2: CONTEXT + MODULE}


def test_a_device_that_cannot_be_told_from_its_neighbour_is_not_read(tmp_path):
    """The driver does not say who it is, and there are two."""
    nobody = f"{support.LIBRARY}:{support.PROGRAMS / 'nouuid' / 'libnouuid.so'}"
    settings = {"SIMGPU_DEVICES": "2", "LD_PRELOAD": nobody}
    program = run(tmp_path, 1, **settings)
    assert device_of(program)["untracked_bytes"] is None
    named = run(tmp_path / "named", 1, CUDA_DEVICE_ORDER="PCI_BUS_ID", **settings)
    assert device_of(named)["untracked_bytes"] == CONTEXT + MODULE


@pytest.mark.parametrize("setting, asks", [({}, 2), ({"MEMTRACE_NVML": "off"}, 0), ({"MEMTRACE": "off"}, 0)])
def test_the_driver_is_asked_once_and_only_where_nvml_is_read(tmp_path, setting, asks):
    nobody = f"{support.LIBRARY}:{support.PROGRAMS / 'nouuid' / 'libnouuid.so'}"
    program = run(tmp_path, 0, SIMGPU_DEVICES="2", LD_PRELOAD=nobody, **setting)
    assert program.stderr.count("who is") == asks


def test_that_managed_memory_may_be_elsewhere_is_said(tmp_path):
    program = run(tmp_path, "managed")
    assert program.report["managed"] == {"current_bytes": 32 * MIB, "peak_bytes": 32 * MIB}
    assert "managed memory may be the host's: untracked is too low by that, up to 32 MiB" in program.stderr
    assert device_of(program)["untracked_bytes"] == CONTEXT - 32 * MIB
    assert "managed" not in run(tmp_path / "without", 0).stderr


def test_forks_do_not_meet_nvml_half_way(tmp_path):
    program = run(tmp_path, "forks")
    assert device_of(program)["reserved"]["allocations"] == 200
    assert len(program.traces) == 1
