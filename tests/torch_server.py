"""Imports PyTorch once and runs programs in forks of itself, each as __main__ of its process.

A request is a line of JSON on stdin: program, arguments, environment, folder, libraries (one more
place for them), timeout_s; what the program prints goes to FOLDER/output. The answer is its exit status, a
line on stdout.
"""

import gc
import json
import os
import signal
import sys

import torch  # noqa: F401
import torch._dynamo  # noqa: F401  # every optimizer of PyTorch 2 imports it

gc.freeze()  # what is imported is not searched when a program ends
this_program = None
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(request["timeout_s"])
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        descriptor = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        this_program, arguments = request["program"], request["arguments"]
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

if this_program:
    __file__ = this_program
    sys.argv = [this_program, *arguments]
    sys.path.append(request["libraries"])
    sys.path[0] = os.path.dirname(this_program)
    # In this namespace: it must live as long as a program's own.
    with open(this_program) as file:
        code = compile(file.read(), this_program, "exec")
    exec(code)
