"""Two worker processes load batches into pinned memory (6 to 12 host blocks: timing decides)."""

from common import F, done, nn, torch


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(3, 64, 64), index % 10


# What done() counts must live as long as the module, else it is freed before the program ends.
if __name__ == "__main__":
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 62 * 62, 10)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        loader = torch.utils.data.DataLoader(Pictures(), 8, num_workers=2, pin_memory=True)
        for pictures, labels in loader:
            scores = model(pictures.cuda(non_blocking=True))
            F.cross_entropy(scores, labels.cuda(non_blocking=True)).backward()
            optimizer.step()
            optimizer.zero_grad()
    done(__file__)
