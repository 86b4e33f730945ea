"""Where the memory went, against what PyTorch's own objects said in a second run of the program.

tests/attribution/compare.py prints the scores as a table, and with --why what is wrong.
"""

import importlib.util
import os
import sys

import pytest

import support

sys.path.insert(0, str(support.ROOT / "tests" / "attribution"))

import compare  # noqa: E402
import runner  # noqa: E402

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

TWELVE = (
    "by_hand",
    "cnn_leak",
    "gan",
    "gpt_adamw",
    "gpt_amp_accumulate",
    "gpt_checkpoint",
    "infer_kv_cache",
    "lora_resume",
    "lstm_adafactor",
    "mlp_sgd_eval",
    "optimizer_in_backward",
    "wgan_gp_ema",
)
# Of the others these are run always: one of each kind of difficulty.
ALWAYS = ("accumulate_sgd", "eval_both_ways", "sam_swap", "two_devices")
# What a program needs from scripts/requirements-attribution.txt.
LIBRARIES = {
    "bitsandbytes_adam8bit": "bitsandbytes",
    "diffusers_unet": "diffusers",
    "lightning_fit": "lightning",
    "peft_lora": "peft",
    "timm_vit": "timm",
}


def chosen():
    if os.environ.get("MEMTRACE_FULL") == "1":
        return [(name, torch) for torch in support.TORCHES for name in runner.names()]
    return [(name, "2.15") for name in TWELVE + ALWAYS]


def is_installed(library):
    return importlib.util.find_spec(library) or (runner.LIBRARIES / library).is_dir()


@pytest.mark.parametrize("name,torch", chosen())
def test_both_runs_have_the_same_blocks(name, torch, tmp_path):
    library = LIBRARIES.get(name)
    if library and not is_installed(library):
        pytest.skip(f"{library} is not installed (scripts/setup.sh full)")
    score = compare.measure(name, tmp_path, torch)
    assert score.blocks > 50
    assert score.astray <= score.blocks / 50
