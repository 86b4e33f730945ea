# env: SIMGPU_MEMORY=1GiB
# expect: oom leak list
# advice: move what is kept to the CPU
# says: that the program adds to
"""The weights at the end of each epoch are kept, as a state dict that was copied, in a main()."""
import copy

from scene import GPU, REPAIRED, Mlp, step, torch


def main():
    model = Mlp(1024, 12)
    optimizer = torch.optim.Adam(model.parameters())
    kept = []
    for _ in range(20):
        for _ in range(6):
            step(optimizer, model(torch.randn(64, 1024, device=GPU)).mean())
        weights = copy.deepcopy(model.state_dict())
        kept.append({key: value.cpu() for key, value in weights.items()} if REPAIRED else weights)


main()
