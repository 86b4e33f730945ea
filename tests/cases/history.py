"""A program that uses PyTorch's own recorder: a tracer beside it must see the same."""

import pickle
import tempfile

from common import GPT, batch, done, os, torch, train

torch.cuda.memory._record_memory_history(stacks="all", max_entries=4_000_000)
model = GPT(layers=4).cuda()
train(model, torch.optim.AdamW(model.parameters()), 2, lambda: batch(2), amp=torch.bfloat16)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "snapshot.pickle")
    torch.cuda.memory._dump_snapshot(path)
    with open(path, "rb") as file:
        trace = pickle.load(file)["device_traces"][0]

actions = {}
live = peak = 0
for entry in trace:
    action = entry["action"]
    actions[action] = actions.get(action, 0) + 1
    if action == "alloc":
        live += entry["size"]
        peak = max(peak, live)
    elif action == "free_completed":
        live -= entry["size"]
done(__file__, actions=actions, requested_peak=peak, requested_live=live)
