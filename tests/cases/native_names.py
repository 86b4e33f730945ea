"""A program that asks PyTorch itself for the C++ frames of every allocation: a tracer beside it must
name the same functions. They go to $CASE_RECORD/native_names.frames.json, one list an allocation."""

from common import F, done, os, torch, write_json

torch.cuda.memory._record_memory_history(stacks="all", max_entries=100_000)
x = torch.randn(64, 64, device="cuda", requires_grad=True)
w = torch.randn(64, 32, device="cuda", requires_grad=True)
y = F.layer_norm(F.gelu(x @ w), (32,))
(y.softmax(-1) + y.cumsum(0)).sort(-1).values.sum().backward()
torch.cuda.synchronize()

trace = torch.cuda.memory._snapshot()["device_traces"][0]
frames = [[f["name"] for f in e["frames"]] for e in trace if e["action"] == "alloc"]
if os.environ.get("CASE_RECORD"):
    write_json(os.path.join(os.environ["CASE_RECORD"], "native_names.frames.json"), frames)
done(__file__)
