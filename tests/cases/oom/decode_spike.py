# env: SIMGPU_MEMORY=2GiB
# expect: oom spike evaluation or too_big
# advice: keep less at once
"""The image is decoded at the end, while the model that made it is still on the card."""

from scene import GPU, REPAIRED, Mlp, nn, torch

denoiser = Mlp(4096, 16)
decoder = nn.Sequential(nn.Conv2d(4, 64, 3), nn.Upsample(scale_factor=8), nn.Conv2d(64, 3, 3))
decoder.to(GPU)


@torch.no_grad()
def generate():
    latent = torch.zeros(1, 4, 256, 256, device=GPU)
    for _ in range(10):
        denoiser(torch.zeros(16, 4096, device=GPU))
    if REPAIRED:
        denoiser.cpu()
    return decoder(latent)


generate()
