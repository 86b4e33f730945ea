"""PointNet: transforms of points and features, a regularizer of the second; after each epoch the
predictions of a test set are collected on the GPU; the learning rate falls by a schedule."""

import torch
import torch.nn as nn
import torch.nn.functional as F

import truth


class STN(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.conv1, self.conv2, self.conv3 = nn.Conv1d(k, 64, 1), nn.Conv1d(64, 128, 1), nn.Conv1d(128, 1024, 1)
        self.fc1, self.fc2, self.fc3 = nn.Linear(1024, 512), nn.Linear(512, 256), nn.Linear(256, k * k)
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm1d(64), nn.BatchNorm1d(128), nn.BatchNorm1d(1024)
        self.bn4, self.bn5 = nn.BatchNorm1d(512), nn.BatchNorm1d(256)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.relu(self.bn3(self.conv3(x)))
        x = torch.max(x, 2, keepdim=True)[0].view(-1, 1024)
        x = F.relu(self.bn4(self.fc1(x)))
        x = self.fc3(F.relu(self.bn5(self.fc2(x))))
        iden = torch.eye(self.k).flatten().view(1, -1).repeat(len(x), 1)
        if x.is_cuda:
            iden = iden.cuda()
        return (x + iden).view(-1, self.k, self.k)


class PointNetDenseCls(nn.Module):
    def __init__(self, k=50):
        super().__init__()
        self.stn, self.fstn = STN(3), STN(64)
        self.conv1, self.conv2, self.conv3 = nn.Conv1d(3, 64, 1), nn.Conv1d(64, 128, 1), nn.Conv1d(128, 1024, 1)
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm1d(64), nn.BatchNorm1d(128), nn.BatchNorm1d(1024)
        self.d1, self.d2, self.d3 = nn.Conv1d(1088, 512, 1), nn.Conv1d(512, 256, 1), nn.Conv1d(256, k, 1)
        self.bd1, self.bd2 = nn.BatchNorm1d(512), nn.BatchNorm1d(256)

    def forward(self, x):
        n_pts = x.size(2)
        trans = self.stn(x)
        x = torch.bmm(x.transpose(2, 1), trans).transpose(2, 1)
        x = F.relu(self.bn1(self.conv1(x)))
        trans_feat = self.fstn(x)
        x = torch.bmm(x.transpose(2, 1), trans_feat).transpose(2, 1)
        pointfeat = x
        x = F.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        x = torch.max(x, 2, keepdim=True)[0].view(-1, 1024, 1).repeat(1, 1, n_pts)
        x = torch.cat([x, pointfeat], 1)
        x = F.relu(self.bd1(self.d1(x)))
        x = F.relu(self.bd2(self.d2(x)))
        return F.log_softmax(self.d3(x).transpose(2, 1).reshape(-1, 50), dim=-1).view(-1, n_pts, 50), trans_feat


def feature_transform_regularizer(trans):
    eye = torch.eye(trans.size(1))[None].cuda()
    return torch.mean(torch.norm(torch.bmm(trans, trans.transpose(2, 1)) - eye, dim=(1, 2)))


classifier = PointNetDenseCls().cuda()
optimizer = torch.optim.Adam(classifier.parameters(), lr=0.001)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)
for epoch in range(2):
    for i in range(4):
        points, target = torch.randn(16, 1024, 3), torch.randint(0, 50, (16, 1024))
        points = points.transpose(2, 1)
        points, target = points.cuda(), target.cuda()
        truth.batch(points, target)
        optimizer.zero_grad()
        classifier = classifier.train()
        pred, trans_feat = classifier(points)
        loss = F.nll_loss(pred.view(-1, 50), target.view(-1))
        loss += feature_transform_regularizer(trans_feat) * 0.001
        loss.backward()
        optimizer.step()
        pred_choice = pred.data.max(2)[1]
        correct = pred_choice.eq(target.data).cpu().sum()
    scheduler.step()
    classifier.eval()
    all_preds, all_targets = [], []
    with torch.no_grad():
        for i in range(6):
            points, target = torch.randn(16, 3, 1024).cuda(), torch.randint(0, 50, (16, 1024)).cuda()
            truth.batch(points, target)
            pred, _ = classifier(points)
            all_preds.append(pred)
            all_targets.append(target)
            truth.label("other", all_preds)
            truth.mark("tested")
    all_preds, all_targets = torch.cat(all_preds), torch.cat(all_targets)
    truth.label("other", all_preds, all_targets)
    iou = (all_preds.max(2)[1] == all_targets).float().mean().item()
    truth.mark("joined")
