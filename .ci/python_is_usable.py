"""Say clearly what a machine lacks before anything is installed. Runs on any Python 3."""

import importlib.util
import sys

if sys.version_info < (3, 11):
    sys.exit(
        "schedulerlog needs Python 3.11 or newer; this is %s at %s.\n"
        "Install one and name it: make PYTHON=/path/to/python3.11 ..." % (sys.version.split()[0], sys.executable)
    )
if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
    sys.exit(
        "This Python can't make virtual environments (venv or ensurepip is missing): %s\n"
        "On Debian and Ubuntu: apt-get install python3-venv" % sys.executable
    )
