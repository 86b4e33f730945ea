"""What embed.c runs, without any module that is a file of machine code: those cannot be loaded into
an interpreter that was opened with RTLD_LOCAL. A libpython that comes late is noticed a moment later:
then there is time between the rounds."""

import json
import sys
import time
import traceback

ROUNDS = 100
PAUSE_S = 0.02 if IS_LATE else 0  # noqa: F821
NAME = "co_qualname" if sys.version_info >= (3, 11) else "co_name"
truths = []


def functions(frame):
    found = []
    while frame is not None:
        found.append(getattr(frame.f_code, NAME))
        frame = frame.f_back
    return found


class Caller:
    def call(self, size):
        # fmt: off
        allocate(size); stack = traceback.extract_stack(); names = functions(sys._getframe())  # noqa: F821
        # fmt: on
        places = zip(reversed(stack), names)
        lines = ["%s:%d %s" % (entry.filename, entry.lineno, name) for entry, name in places]
        truths.append([size, lines])


for index in range(ROUNDS):
    [(lambda: Caller().call(100 + index))() for _ in range(1)]
    time.sleep(PAUSE_S)
with open(OUT, "w") as file:  # noqa: F821
    json.dump({"version": sys.version.split()[0], "calls": truths}, file)
