"""A trainer as many write it: evaluation after every N steps with the predictions gathered on the GPU, the
best state kept by deepcopy of the state_dict, early stopping, and the best state loaded at the end."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

import truth

WORDS, LENGTH, CLASSES = 20000, 128, 20


class Texts(Dataset):
    def __init__(self, size):
        self.ids = torch.randint(0, WORDS, (size, LENGTH))
        self.labels = torch.randint(0, CLASSES, (size,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "mask": self.ids[i] > 10, "labels": self.labels[i]}


class Classifier(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, input_ids, mask, labels=None):
        x = self.encoder(self.embedding(input_ids), src_key_padding_mask=~mask)
        kept = mask.unsqueeze(-1).float()
        logits = self.head((x * kept).sum(1) / kept.sum(1))
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


class Trainer:
    def __init__(self, model, train, valid, steps=9, every=3, patience=10):
        self.device = torch.device("cuda")
        self.model = model.to(self.device)
        self.train_data = DataLoader(train, 32, shuffle=True, num_workers=0)
        self.valid_data = DataLoader(valid, 64)
        self.steps, self.every, self.patience = steps, every, patience
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 1e-3, steps)
        self.best_score, self.best_state, self.bad = float("-inf"), None, 0
        self.history = []

    def place(self, batch):
        batch = {k: v.to(self.device) for k, v in batch.items()}
        truth.batch(*batch.values())
        return batch

    def train_step(self, batch):
        self.model.train()
        self.optimizer.zero_grad()
        out = self.model(**self.place(batch))
        out["loss"].backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        return out["loss"].detach()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits, labels = [], []
        for batch in self.valid_data:
            batch = self.place(batch)
            logits.append(self.model(**batch)["logits"])
            labels.append(batch["labels"])
        logits, labels = torch.cat(logits), torch.cat(labels)
        return (logits.argmax(-1) == labels).float().mean().item()

    def fit(self):
        done = 0
        while done < self.steps:
            for batch in self.train_data:
                self.history.append(self.train_step(batch))
                done += 1
                if done % self.every == 0:
                    score = self.evaluate() + done
                    if score > self.best_score:
                        self.best_score, self.bad = score, 0
                        self.best_state = copy.deepcopy(self.model.state_dict())
                        truth.label("other", *self.best_state.values())
                        truth.mark("kept")
                    else:
                        self.bad += 1
                if done >= self.steps or self.bad >= self.patience:
                    break
        self.model.load_state_dict(self.best_state)
        return self.evaluate()


Trainer(Classifier(), Texts(160), Texts(128)).fit()
