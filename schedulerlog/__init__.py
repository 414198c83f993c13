"""The package that ``pipx install schedulerlog`` installs: the command ``schedulerlog``.

``schedulerlog.events`` has the event models and their codec, for consumers of the topics.

The wheel has this one name for Python. The packages of this project (``api``, ``process``, …) lie below it, in
``schedulerlog/packages``, because names as common as theirs would clash with those of other programs. They are imported
by their own names all the same: ``main`` puts their folder first on the path of this process, and of no other
(docs/decisions/0024).
"""

import atexit
import gc
import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> None:
    """Run the command line."""
    try:
        _find_packages()
        # Found only now.
        from cli.command import run

        run()
    except KeyboardInterrupt:
        _end_interrupted()


def run_kubectl() -> None:
    """Run ``kubectl schedulerlog``."""
    try:
        _find_packages()
        from cli.terminal.kubectl import run

        run()
    except KeyboardInterrupt:
        _end_interrupted()


def complete_kubectl() -> None:
    """Print how a line of ``kubectl schedulerlog`` may continue."""
    _find_packages()
    from cli.terminal.kubectl import complete

    complete(sys.argv[1:])


def _end_interrupted() -> NoReturn:
    """End the process after Ctrl-C while modules are imported, as a command ends that is interrupted later."""
    sys.stderr.write("Interrupted.\n")
    sys.stderr.flush()
    # Without Python's end, which would run half-imported modules' handlers.
    os._exit(130)


def _find_packages() -> None:
    here = Path(__file__).resolve().parent
    installed = here / "packages"
    # In a checkout this package lies beside the others.
    sys.path.insert(0, str(installed if installed.is_dir() else here.parent))
    # Imports make tens of thousands of objects that live as long as the process: to look among them for garbage after
    # every 700, as Python does, takes a tenth of the time to start. Not more than this: services start here too, and
    # garbage waits in their memory meanwhile. At its end Python would look through all objects twice more.
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)
    # numpy's BLAS starts a thread for every processor while it is imported, which takes a third of numpy's import and
    # many of a container's processes on a large node; no service multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # pydantic reads the metadata of every package of the environment to find plugins, and there is none for us: a fifth
    # of the time to start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
