"""Classifier head and loss of Gemma 2 (2B) for 8,192 tokens, as the benchmark of apple/ml-cross-entropy measures them
without its own kernels: logits in bf16, capped, the loss in fp32.

    linear_head.py loss|both        the loss alone, or its gradients too
"""

import sys

import torch

TOKENS, WIDTH, VOCABULARY, CAP = 8192, 2304, 256000, 30.0


def loss_of(embeddings, classifier, targets):
    logits = embeddings @ classifier.T
    logits = torch.tanh(logits / CAP) * CAP
    return torch.nn.functional.cross_entropy(logits.float(), targets)


embeddings = torch.zeros(TOKENS, WIDTH, dtype=torch.bfloat16, device="cuda", requires_grad=True)
classifier = torch.zeros(VOCABULARY, WIDTH, dtype=torch.bfloat16, device="cuda", requires_grad=True)
loss = loss_of(embeddings, classifier, torch.zeros(TOKENS, dtype=torch.int64, device="cuda"))
if sys.argv[1] == "both":
    loss.backward()
