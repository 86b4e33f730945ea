# env: HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
"""GPT-2 by the Trainer of transformers: accumulation, bf16, clipping, evaluation."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import truth


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.randint(0, 5000, (256,))
        return {"input_ids": ids, "labels": ids}


class Watched(Trainer):
    def _prepare_inputs(self, inputs):
        inputs = super()._prepare_inputs(inputs)
        truth.batch(*inputs.values())
        return inputs


config = GPT2Config(vocab_size=5000, n_layer=4, n_embd=256, n_head=4, n_positions=256)
config.bos_token_id = config.eos_token_id = 0
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=2,
        max_steps=3,
        bf16=True,
        report_to=[],
        save_strategy="no",
        eval_strategy="steps",
        eval_steps=2,
        disable_tqdm=True,
    )
    Watched(
        GPT2LMHeadModel(config), arguments, train_dataset=Sentences(), eval_dataset=Sentences()
    ).train()
