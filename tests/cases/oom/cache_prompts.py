# env: SIMGPU_MEMORY=1GiB
# expect: oom leak cache or leak list
# advice: clear it
"""A server keeps the encoding of every prompt that it has seen in a dictionary."""

from scene import GPU, REPAIRED, Mlp, torch

encoder = Mlp()
encodings = {}


@torch.no_grad()
def encode(prompt):
    if prompt not in encodings:
        encodings[prompt] = encoder(torch.zeros(2048, 512, device=GPU))
    if REPAIRED and len(encodings) > 16:
        encodings.pop(next(iter(encodings)))
    return encodings.get(prompt)


for request in range(300):
    encode(f"prompt {request}")
