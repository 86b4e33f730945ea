"""What embed.c runs, without any module that is a file of machine code: those cannot be loaded into
an interpreter that was opened with RTLD_LOCAL."""

import json
import sys
import traceback

ROUNDS = 100
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
        allocate(size); stack = traceback.extract_stack(); names = functions(sys._getframe())
        # fmt: on
        places = zip(reversed(stack), names)
        lines = ["%s:%d %s" % (entry.filename, entry.lineno, name) for entry, name in places]
        truths.append([size, lines])


for index in range(ROUNDS):
    [(lambda: Caller().call(100 + index))() for _ in range(1)]
with open(OUT, "w") as file:  # noqa: F821
    json.dump({"version": sys.version.split()[0], "calls": truths}, file)
