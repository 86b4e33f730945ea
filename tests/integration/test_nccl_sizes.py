"""What the simulated NCCL takes, against figures that others measured and what NCCL's variables mean."""

import json
import sys

import pytest

from support import PYTHON, ROOT, TORCHES, environment, run

pytestmark = pytest.mark.usefixtures("simgpu")
MIB = 1 << 20
INIT = 16  # assumed


def sizes(count, **more):
    """MiB of the communicator, its first all-reduce, its first send and receive, another communicator."""
    env = environment(preload=False, SIMGPU_DEVICES=str(count), **more)
    result = run([sys.executable, ROOT / "tests" / "ranks" / "sizes.py", count], env)
    assert result.returncode == 0, result.stderr
    return [size / MIB for size in json.loads(result.stdout)]


@pytest.mark.parametrize(
    "card, count, version, measured, tolerance",
    [
        ("h100", 8, "2.21.5", 2840, 24),  # 3451-3459 MiB in all, 615 of them the context (modded-nanogpt, torch 2.6)
        ("h100", 8, "2.26.2", 897, 24),  # 1504-1521 (torch 2.7)
        ("h100", 1, "2.28.9", 570, 50),  # 1185 (torch 2.11)
        ("a100-80", 2, "2.18.3", 544, 1),  # nccl#964
        ("a100-80", 4, "2.18.3", 688, 1),
    ],
)
def test_a_communicator_takes_what_was_measured(card, count, version, measured, tolerance):
    begun, reduced, _, again = sizes(count, SIMGPU_CARD=card, SIMGPU_NCCL_VERSION=version)
    assert abs(begun + reduced - measured) <= tolerance
    # before 2.22 all is there at once
    assert (reduced == 0) == (count == 1 or version < "2.22") and again == begun


def test_a_peer_takes_its_connections():
    """nccl#1685: 32 channels of 12 MiB a peer, on 8 H100; here it sends to one and receives from another."""
    assert sizes(8, SIMGPU_CARD="h100")[2] == 2 * 32 * 12
    assert sizes(2, SIMGPU_CARD="h100")[2] == 32 * 12


def test_without_access_between_gpus_the_buffers_are_the_host_s():
    assert sizes(2, SIMGPU_CARD="rtx4090") == [INIT, 0, 0, INIT]
    assert sizes(2, SIMGPU_CARD="h100", NCCL_P2P_DISABLE="1") == [INIT, 0, 0, INIT]


def test_nccl_s_own_variables_hold():
    assert sizes(2, SIMGPU_CARD="l4")[:2] == [INIT, 4 * 12]
    assert sizes(2, SIMGPU_CARD="l4", NCCL_MAX_NCHANNELS="1")[1] == 12
    assert sizes(2, SIMGPU_CARD="l4", NCCL_MIN_CTAS="6")[1] == 6 * 12
    assert sizes(2, SIMGPU_CARD="l4", NCCL_BUFFSIZE=str(MIB))[1] == 4 * 10  # 1 + 5.2 MiB in steps of 2, and 2
    assert sizes(2, SIMGPU_CARD="l4", NCCL_RUNTIME_CONNECT="0")[:2] == [INIT + 4 * 12, 0]
    assert sizes(2, SIMGPU_NCCL_INIT="7MiB", SIMGPU_NCCL_CHANNEL="4MiB", SIMGPU_NCCL_CHANNELS="3")[:2] == [8, 12]


SAID = """
import ctypes, sys
if len(sys.argv) > 1:
    import torch
    print(*torch.cuda.nccl.version(), end=" ")
version = ctypes.c_int()
ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(version))
print(version.value)
"""


def said(*words, torch=None, **more):
    result = run([PYTHON, "-c", SAID, *words], environment(preload=False, torch=torch, **more))
    assert result.returncode == 0, result.stderr
    return [int(word) for word in result.stdout.split()]


@pytest.mark.parametrize("torch", TORCHES)
def test_it_is_the_version_with_which_pytorch_was_built(torch):
    major, minor, patch, version = said("torch", torch=torch)
    assert version == major * 10000 + minor * 100 + patch > 22707 - 500


def test_another_version_can_be_asked_for():
    assert said() == [22707]
    assert said(SIMGPU_NCCL_VERSION="2.21.5") == said(SIMGPU_NCCL_VERSION="22105") == [22105]
    result = run([sys.executable, "-c", SAID], environment(preload=False, SIMGPU_NCCL_VERSION="new"))
    assert result.stdout == "22707\n" and "SIMGPU_NCCL_VERSION=new is no version" in result.stderr
