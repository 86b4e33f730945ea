"""Runs Python programs on the simulated GPU without importing PyTorch anew for each."""

import json
import subprocess
import threading

import support

SERVER = support.ROOT / "tests" / "torch_server.py"
LIBRARIES = support.ROOT / ".venv" / "clients" / "bitsandbytes" / "site-packages"
here = threading.local()


class Server:
    """tests/torch_server.py, with one PyTorch, under memtrace or not."""

    def __init__(self, torch, preload):
        self.process = subprocess.Popen(
            [support.PYTHON, SERVER],
            env=support.environment(torch=torch, preload=preload, PYTHONHASHSEED="0"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program, folder, environment, arguments=()):
        """Returns the exit status and what was printed."""
        request = {
            "program": str(program),
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": environment,
            "libraries": str(LIBRARIES),
            "timeout_s": support.TIMEOUT_S,
        }
        print(json.dumps(request), file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        return status, (folder / "output").read_text(errors="replace")


def server(torch, preload):
    """One for each thread that runs programs. It ends with this process: its stdin ends then."""
    servers = here.__dict__.setdefault("servers", {})
    if (torch, preload) not in servers:
        servers[torch, preload] = Server(torch, preload)
    return servers[torch, preload]
