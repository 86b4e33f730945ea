"""Feeds `memtrace sparse-checkpoint` configs of models that nobody wrote: each is a dictionary with a model type, or is
refused with one line.

    fuzz_config.py SECONDS
"""

import io
import pathlib
import random
import sys
import tempfile
import time
from contextlib import redirect_stderr

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "src" / "cli"))
sys.dont_write_bytecode = True

import sparse_checkpoint  # noqa: E402

SEEDS = [
    b'{"model_type": "gpt2", "n_layer": 2, "architectures": ["GPT2LMHeadModel"]}',
    b'{"model_type": null, "a": [1e400, -0, "\\u00fc\\ud800", true]}',
    b"[[[{}]]]",
    b"",
]
PIECES = [b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\u", b"\0", b"\xff\xfe", b"NaN", b"1" * 5000, b"[" * 3000]


def mutated(chance):
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at:at] = chance.choice(PIECES)
            case 1:
                del data[at : at + chance.randrange(9)]
            case 2:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                data *= chance.randrange(1, 3)
    return bytes(data)


def check(path):
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            config = sparse_checkpoint.read_config(path)
    except SystemExit as ended:
        words = said.getvalue()
        assert ended.code == 3 and words.startswith("memtrace: ") and words.count("\n") == 1, words
    else:
        assert isinstance(config, dict) and "model_type" in config


def main(seconds):
    chance, end, runs = random.Random(6), time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        while time.monotonic() < end:
            data = mutated(chance)
            path.write_bytes(data)
            try:
                check(path)
            except BaseException:
                print(f"found: {data!r}", file=sys.stderr)
                raise
            runs += 1
    print(f"{runs} inputs")


if __name__ == "__main__":
    main(float(sys.argv[1]))
