# env: HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
"""Text by generate() of transformers, with its cache of keys and values."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.cache_utils import DynamicLayer

import truth

update = DynamicLayer.update


def watched(self, *arguments, **named):
    kept = update(self, *arguments, **named)
    truth.label("other", *kept)
    return kept


DynamicLayer.update = watched
config = GPT2Config(vocab_size=5000, n_layer=4, n_embd=512, n_head=8, n_positions=512)
config.bos_token_id = config.eos_token_id = config.pad_token_id = 0
model = GPT2LMHeadModel(config).half().cuda().eval()
for _ in range(2):
    ids = torch.randint(1, 5000, (16, 128)).cuda()
    truth.batch(ids)
    model.generate(ids, max_new_tokens=16, min_new_tokens=16, do_sample=False)
