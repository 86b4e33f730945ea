# env: SIMGPU_MEMORY=1GiB
# expect: oom duplicate or spike load
# advice: map_location='cpu'
# never: checkpointing batch
"""Four shards of a checkpoint are read to the GPU and joined there, and then the model is made."""

from scene import GPU, REPAIRED, Mlp, checkpoint, torch

whole = torch.load(checkpoint(4096, 5), map_location="cpu")
shards = [
    {name: tensor.chunk(4)[rank].to("cpu" if REPAIRED else GPU) for name, tensor in whole.items()}
    for rank in range(4)
]
merged = {name: torch.cat([shard[name] for shard in shards]) for name in whole}
model = Mlp(4096, 5)
model.load_state_dict(merged)
