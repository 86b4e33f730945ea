"""A masked language model of the transformers library."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import training
from transformers import BertConfig, BertForMaskedLM

WORDS, LENGTH = 8000, 256


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=WORDS,
            hidden_size=512,
            num_hidden_layers=6,
            num_attention_heads=8,
            intermediate_size=2048,
            attn_implementation="eager" if training.has("manual_attention") else "sdpa",
        )
        self.bert = BertForMaskedLM(config)
        if training.has("checkpoint"):
            self.bert.gradient_checkpointing_enable({"use_reentrant": False})

    def forward(self, ids):
        return self.bert(input_ids=ids).logits


def make_batch(size):
    shape = size, training.length(LENGTH)
    return [torch.randint(0, WORDS, shape).cuda() for _ in range(2)]


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


training.train(Model().cuda(), 16, make_batch, loss_of)
