"""A program whose allocations PyTorch's own recorder keeps with their Python frames.

Writes them to CASE_RECORD/NAME.stacks.json, one entry a block event in order: [action, address,
[[file, line, function], ... innermost first]].
"""

import json

from common import GPT, batch, done, os, torch, train

torch.cuda.memory._record_memory_history(stacks="python", max_entries=4_000_000)
model = GPT(layers=3, checkpoint=True).cuda()
train(model, torch.optim.AdamW(model.parameters()), 2, lambda: batch(1), amp=torch.bfloat16)
head = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(3))).cuda()
optimizer = torch.optim.Adam(head.parameters(), foreach=False)
for _ in range(2):
    head(torch.ones(8, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

entries = []
for entry in torch.cuda.memory._snapshot()["device_traces"][0]:
    if entry["action"] in ("alloc", "free_requested"):
        frames = [[f["filename"], f["line"], f["name"]] for f in entry["frames"]]
        entries.append([entry["action"], entry["addr"], frames])
folder = os.environ.get("CASE_RECORD")
if folder:
    with open(os.path.join(folder, "recorded_stacks.stacks.json"), "w") as file:
        json.dump(entries, file)
done(__file__)
