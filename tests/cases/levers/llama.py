"""A causal language model of the transformers library."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training
from transformers import LlamaConfig, LlamaForCausalLM

WORDS, LENGTH = 12000, 384


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        config = LlamaConfig(
            vocab_size=WORDS,
            hidden_size=448,
            intermediate_size=1216,
            num_hidden_layers=8,
            num_attention_heads=7,
            num_key_value_heads=7,
            use_cache=False,
            attn_implementation="eager" if training.has("manual_attention") else "sdpa",
        )
        self.llama = LlamaForCausalLM(config)
        if training.has("checkpoint"):
            self.llama.gradient_checkpointing_enable({"use_reentrant": False})

    def forward(self, ids):
        if training.has("chunks"):
            return self.llama.model(input_ids=ids).last_hidden_state
        return self.llama(input_ids=ids).logits


model = Model().cuda()


def make_batch(size):
    shape = size, training.length(LENGTH)
    return [torch.randint(0, WORDS, shape).cuda() for _ in range(2)]


def loss_of(made, targets):
    if training.has("chunks"):
        return training.chunked_loss(model.llama.lm_head, made, targets)
    return F.cross_entropy(made.flatten(0, 1), targets.flatten())


training.train(model, 12, make_batch, loss_of)
