"""Writes a checkpoint without weights: config.json, and a safetensors file that is one hole behind
its header. Which tensors a model has is asked of the model itself, built on the meta device.

    sparse_checkpoint.py CONFIG DIR DTYPE ("" for the config's own)
"""

import json
import os
import shutil
import signal
import struct
import sys

NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
    "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}


def fail(words, status=3):
    print(f"memtrace: sparse-checkpoint: {words}", file=sys.stderr)
    sys.exit(status)


def read_config(path):
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except (ValueError, RecursionError) as error:
        fail(f"{path} is not JSON ({error}); it takes the config.json of a model")
    if not isinstance(config, dict) or "model_type" not in config:
        fail(f"{path}: it has no model_type, so it is no config.json of a model")
    return config


def build(path):
    """The model of the config, with shapes and no memory, and the class that loads it."""
    try:
        import torch
        import transformers
    except ImportError as error:
        fail(f"{sys.executable}: {error}; --python names the one with torch and transformers")
    try:
        config = transformers.AutoConfig.from_pretrained(path)
    except (ValueError, KeyError, OSError) as error:
        fail(f"{path}: {str(error).splitlines()[0]}")
    name = (config.architectures or [None])[0]
    kind = getattr(transformers, name, None) if name else None
    if name and kind is None:
        fail(f"{name} is not in transformers {transformers.__version__}")
    with torch.device("meta"):
        return kind(config) if kind else transformers.AutoModel.from_config(config)


def list_tensors(model, wanted):
    """(name, dtype, shape) of what a checkpoint holds: of tied weights the first alone."""
    seen = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        own = str(tensor.dtype).removeprefix("torch.")
        yield name, wanted if wanted and tensor.is_floating_point() else own, list(tensor.shape)


def make_header(tensors):
    """The header's bytes and how many bytes follow it."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape in tensors:
        count = 1
        for size in shape:
            count *= size
        width = 1 if dtype == "bool" or "8" in dtype.split("_")[0] else {"64": 8, "32": 4, "16": 2}[dtype[-2:]]
        header[name] = {"dtype": NAMES[dtype], "shape": shape, "data_offsets": [offset, offset + count * width]}
        offset += count * width
    text = json.dumps(header).encode()
    return text + b" " * (-len(text) % 8), offset


def write_hole(place, head, data_bytes):
    """A file that cannot be whole is not left behind: a second try would find it there."""
    with open(place, "xb") as file:
        try:
            file.write(head)
            file.truncate(len(head) + data_bytes)
        except OSError:
            os.unlink(place)
            raise


def main():
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback
    path, folder, wanted = sys.argv[1:]
    if wanted and wanted not in NAMES:
        fail(f"--dtype is one of {', '.join(NAMES)}, not {wanted}", status=2)
    raw = read_config(path)
    model = build(path)
    dtype = wanted or raw.get("dtype") or raw.get("torch_dtype") or ""
    tensors = list(list_tensors(model, dtype if dtype in NAMES else ""))
    header, data_bytes = make_header(tensors)
    place = os.path.join(folder, "model.safetensors")
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.exists(place):
            fail(f"{place} is there already; take another folder, or remove it")
        write_hole(place, struct.pack("<Q", len(header)) + header, data_bytes)
        target = os.path.join(folder, "config.json")
        if not os.path.exists(target) or not os.path.samefile(path, target):
            shutil.copyfile(path, target)
    except OSError as error:
        fail(error)
    print(f"{place}: {len(tensors)} tensors, {data_bytes:,} bytes, of which none is on the disk")


if __name__ == "__main__":
    main()
