# env: HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
"""A small GPT-2 made from its configuration, trained by the Trainer of transformers."""

import tempfile

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from common import done, torch


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.randint(0, 5000, (256,))
        return {"input_ids": ids, "labels": ids}


model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=5000,
        n_layer=4,
        n_embd=256,
        n_head=4,
        n_positions=256,
        bos_token_id=0,
        eos_token_id=0,
    )
)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=3,
        bf16=True,
        gradient_checkpointing=True,
        report_to=[],
        logging_steps=1,
        save_strategy="no",
        disable_tqdm=True,
    )
    Trainer(model, arguments, train_dataset=Sentences()).train()
done(__file__)
