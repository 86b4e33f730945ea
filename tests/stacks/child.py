"""Usage: child.py OUT.json — a process that another one started; writes OUT.json.PID."""

import os
import sys

import cases
from probe import save

cases.methods()
cases.descend(20)
save("%s.%d" % (sys.argv[1], os.getpid()))
