"""A LightningModule, fitted and validated by its Trainer."""

import lightning
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import truth
from models import perceptron


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = perceptron(1024, 4096, 4096, 10)

    def training_step(self, batch, index):
        x, y = batch
        truth.batch(x, y)
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        truth.batch(x, y)
        self.log("val", F.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def examples(count):
    return DataLoader(
        TensorDataset(torch.randn(count, 1024), torch.randint(0, 10, (count,))), 512
    )


trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="gpu",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Module(), examples(2048), examples(1024))
