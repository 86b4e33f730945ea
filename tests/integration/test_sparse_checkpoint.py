"""`memtrace sparse-checkpoint`: from_pretrained takes its real path, and nothing is on the disk."""

import json
import os

import pytest

import support
from support import PYTHON, TOOL, environment, run

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
    "intermediate_size": 5632, "num_hidden_layers": 6, "num_attention_heads": 16,
    "num_key_value_heads": 4, "vocab_size": 32000, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 768, "n_layer": 12,
        "n_head": 12, "vocab_size": 50257}

# Counted by hand, parameters by layer; GPT-2's head is its embedding.
LLAMA_BYTES = 2 * (
    2 * 32000 * 2048 + 2048
    + 6 * (2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 5632 * 2048 + 2 * 2048)
)
GPT2_BYTES = 4 * 124_439_808

LOAD = """
import sys, torch, transformers
model, report = transformers.AutoModelForCausalLM.from_pretrained(
    sys.argv[1], device_map={"": 0}, output_loading_info=True)
assert not report["missing_keys"] and not report["unexpected_keys"], report
print(torch.cuda.memory_allocated(), sum(p.nbytes for p in model.parameters()))
"""


def sparse(*words, status=0, **more):
    env = environment(preload=False, **more)
    del env["LD_LIBRARY_PATH"]
    result = run([TOOL, "sparse-checkpoint", "--python", PYTHON, *words], env)
    assert result.returncode == status, result.stderr
    return result


@pytest.mark.parametrize("config, expected", [
    (LLAMA, LLAMA_BYTES),
    pytest.param(GPT2, GPT2_BYTES, marks=pytest.mark.skipif(
        os.environ.get("MEMTRACE_FULL") != "1", reason="a second one: full")),
])
def test_from_pretrained_loads_it_and_nothing_is_on_the_disk(tmp_path, config, expected):
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = tmp_path / "model"
    said = sparse(tmp_path / "config.json", model).stdout
    assert f"{expected:,} bytes" in said
    weights = model / "model.safetensors"
    assert weights.stat().st_size > expected
    assert weights.stat().st_blocks * 512 < 1 << 20
    program = tmp_path / "load.py"
    program.write_text(LOAD)
    env = environment(preload=False)
    result = run([TOOL, "run", "--simulate", "a100-40", "--", PYTHON, program, model], env, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    allocated, parameters = map(int, result.stdout.split()[-2:])
    assert parameters == expected
    assert expected <= allocated < expected * 1.01  # buffers and rounding


@pytest.mark.parametrize(
    "config, words, said, status",
    [
        ("{}", (), "it has no model_type", 3),
        ("{", (), "config.json is not JSON", 3),
        (None, (), "config.json: No such file or directory", 3),
        ('{"model_type": "no-such-model"}', (), "no-such-model", 3),
        ('{"model_type": "gpt2"}', ("--dtype", "int3"), "--dtype is one of", 2),
    ],
)
def test_what_is_no_config_is_refused(tmp_path, config, words, said, status):
    path = tmp_path / "config.json"
    if config is not None:
        path.write_text(config)
    result = sparse(*words, path, tmp_path / "model", status=status)
    assert said in result.stderr and result.stderr.startswith("memtrace: "), result.stderr
    assert not (tmp_path / "model").exists()


def test_a_file_that_cannot_be_whole_is_not_left_behind(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**GPT2, "n_layer": 1}))
    script = f"ulimit -f 1000; exec {TOOL} sparse-checkpoint --python {PYTHON} {tmp_path}/config.json {tmp_path}/model"
    result = run(["/bin/sh", "-c", script], environment(preload=False, LD_LIBRARY_PATH=None))
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith("memtrace: ") and result.stderr.count("\n") == 1
    assert not list((tmp_path / "model").iterdir())
