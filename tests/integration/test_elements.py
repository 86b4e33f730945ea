"""How large an element of a block's tensor is: what memtrace tells is what PyTorch says, or it tells nothing."""

import pytest

import support
import warm_torch

pytestmark = pytest.mark.usefixtures("library", "tool", "simgpu")

# Prints for each tensor that is kept: its address, the bytes of an element, and whether that must be known.
PROGRAM = """
import torch

kept = []


def keep(tensor, must=True):
    kept.append(tensor)
    print("ELEMENT", tensor.untyped_storage().data_ptr(), tensor.element_size(), int(must))
    return tensor


names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 complex128"
dtypes = [getattr(torch, name) for name in (names + " float8_e4m3fn float8_e5m2").split()]
for count in (3, 100, 700, 300_000, 3_000_000):
    for dtype in dtypes:
        keep(torch.empty(count, dtype=dtype, device="cuda"))
        keep(torch.empty_strided((count, 2), (1, count), dtype=dtype, device="cuda"))
        keep(torch.zeros(count, device="cuda").to(dtype))
        keep(torch.empty(count, dtype=dtype).cuda())
        keep(torch.empty_like(kept[-1]))
        keep(kept[-1].clone())
    half, single = (torch.ones(count, device="cuda", dtype=t) for t in (torch.bfloat16, torch.float32))
    for a in half, single:
        for made in (a + a, a * 2, a > 1, a.sum(), a.exp(), torch.relu(a), torch.cat([a, a])):
            keep(made)
        keep(a.argsort(), must=False)  # 2.8 makes its room larger afterwards
    keep(half + single)
    keep(half.float())
    square = torch.ones(64, count // 64 + 1, device="cuda", dtype=torch.bfloat16)
    keep(square @ square.T)
    keep(torch.nn.functional.dropout(single, 0.5))
    keep(torch.randint(0, 9, (count,), device="cuda"))

# What asks for bytes, not for elements, after tensors that are not on the device.
for count in (100, 300_000):
    torch.empty(count, dtype=torch.float64, device="meta")
    keep(torch.empty(0, dtype=torch.int16, device="cuda").resize_(4 * count), must=False)
    torch.empty(count + 1, dtype=torch.float64)
    raw = torch.cuda.caching_allocator_alloc(8 * count)
    print("ELEMENT", raw, 0, 1)

model = torch.nn.Linear(2000, 1000).cuda().to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.ones(500, 2000, device="cuda", dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
for p in model.parameters():
    keep(p.data)
    keep(p.grad)
    for state in optimizer.state[p].values():
        if state.is_cuda:
            keep(state)
"""


@pytest.mark.parametrize("torch", support.TORCHES)
def test_elements_are_as_large_as_pytorch_says(torch, tmp_path):
    program, trace = tmp_path / "program.py", tmp_path / "run.mtrace"
    program.write_text(PROGRAM)
    status, output = warm_torch.server(torch, True).run(program, tmp_path, {"MEMTRACE_OUTPUT": str(trace)})
    assert status == 0, output
    wanted = {}
    for line in output.splitlines():
        if line.startswith("ELEMENT "):
            address, size, must = map(int, line.split()[1:])
            wanted[address] = size, bool(must)
    told = {}
    for line in support.dump(trace):
        if line["what"] == "block_alloc":
            told[line["addr"]] = line.get("element_bytes", 0)
    wrong = [(hex(a), told[a], *w) for a, w in wanted.items() if told[a] != w[0] and (w[1] or told[a])]
    assert len(wanted) > 500 and not wrong


# Layers of 4,194,304 parameters, and what AdamW works on.
TRAINING = """
import torch

dtypes, has_masters = [torch.float32 if word == "single" else torch.bfloat16 for word in {words!r}], {has_masters}
layers = [torch.nn.Linear(2048, 2048, bias=False).cuda().to(dtype) for dtype in dtypes]
weights = [layer.weight for layer in layers]
stepped = [w.detach().float().requires_grad_() for w in weights] if has_masters else weights
optimizer = torch.optim.AdamW(stepped)
for _ in range(3):
    x = torch.ones(8, 2048, device="cuda")
    for layer in layers:
        x = layer(x.to(layer.weight.dtype))
    x.sum().backward()
    if has_masters:
        for master, weight in zip(stepped, weights):
            master.grad = weight.grad.float()
            weight.grad = None
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for master, weight in zip(stepped, weights):
            weight.copy_(master)
"""
# Weights, gradients and two moments; of six layers.
HAND_COUNTED = {
    "single": (["single"] * 6, False, 4 + 4 + 8),
    "half": (["half"] * 6, False, 2 + 2 + 4),
    "half with masters": (["half"] * 6, True, 2 + 4 + 2 + 8),
    "mixed": (["single", "single", "half"] * 2, False, (2 * 16 + 8) / 3),
    "as many of both": (["single", "half"] * 3, False, None),  # these may be a model and its masters
}


@pytest.mark.parametrize("case", HAND_COUNTED)
def test_bytes_a_parameter_are_those_counted_by_hand(case, tmp_path):
    words, has_masters, wanted = HAND_COUNTED[case]
    program, trace = tmp_path / "program.py", tmp_path / "run.mtrace"
    program.write_text(TRAINING.format(words=words, has_masters=has_masters))
    status, output = warm_torch.server("2.15", True).run(program, tmp_path, {"MEMTRACE_OUTPUT": str(trace)})
    assert status == 0, output
    (device,) = support.report(trace)["devices"]
    told = device["expected"]["bytes_a_parameter"]
    assert told == (round(wanted) if wanted else None)
    assert "if it is fp32" not in support.memtrace("report", trace)
