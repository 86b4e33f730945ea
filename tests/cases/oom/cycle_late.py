# env: SIMGPU_MEMORY=1GiB
# expect: oom leak cycle
# advice: break the cycle
"""Each request is an object that refers to itself. At first Python's collector frees some in time; then it is told to
run seldom, as servers do, and comes too late: it counts objects, not bytes."""

from scene import BYTES, MIB, REPAIRED, Mlp, gc, torch

model = Mlp()
log = []


class Request:
    def __init__(self):
        self.x = torch.empty(4 * MIB, **BYTES)
        self.whole = None if REPAIRED else self


def parse(words):
    return [{"word": [word]} for word in range(words)]


def route(words):
    return [[word, [word]] for word in range(words)]


@torch.no_grad()
def serve(number):
    request = Request()
    log.append(parse(7 + number % 5))
    log.append(route(5 + number % 7))
    model(torch.zeros(64, 512, device="cuda"))
    return request.x.numel()


gc.set_threshold(150, 1, 1)
for number in range(120):
    serve(number)
gc.set_threshold(100_000, 1, 1)
for number in range(300):
    serve(number)
