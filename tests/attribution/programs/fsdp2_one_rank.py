"""fully_shard over each block and the root, one rank, bf16 for compute."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import truth
from models import GPT, next_token_loss, token_ids

dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
torch.cuda.set_device(0)
model = GPT(layers=4)
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for block in model.blocks:
    fully_shard(block, mp_policy=policy)
fully_shard(model, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    ids, targets = token_ids(4).cuda(), token_ids(4).cuda()
    truth.batch(ids, targets)
    loss = next_token_loss(model(ids).float(), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
