"""bert-large fine-tuned by the Trainer on random tokens, 512 sequences of 512, as "Model training anatomy" and "Efficient
training on a single GPU" of transformers have it, from the configuration. As in 2022, AdamW works on a parameter at a time, and
gradients are set to zero, not dropped (PyTorch 2 drops them).

    bert_trainer.py BATCH [NAME=VALUE of TrainingArguments]...
"""

import functools
import sys
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

LENGTH, STEPS = 512, 3


class Sequences(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return {"input_ids": torch.randint(100, 30000, (LENGTH,)), "labels": index % 2}


def main(batch, *options):
    config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
                        attn_implementation="eager")
    with torch.device("cuda"):
        model = BertForSequenceClassification(config)
    model.zero_grad = functools.partial(model.zero_grad, set_to_none=False)
    settings = dict(option.split("=") for option in options)
    values = {"True": True, "False": False}
    settings = {key: values.get(value, int(value) if value.isdigit() else value) for key, value in settings.items()}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, per_device_train_batch_size=batch, max_steps=STEPS, report_to="none",
                                      save_strategy="no", disable_tqdm=True, **settings)
        optimizer = None
        if "optim" not in settings:
            optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, foreach=False)
        Trainer(model, arguments, train_dataset=Sequences(), optimizers=(optimizer, None)).train()


main(int(sys.argv[1]), *sys.argv[2:])
