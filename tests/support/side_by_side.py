"""Distribution of the tests among the workers of pytest-xdist.

A module stays on one worker, because its tests share servers and processes. All modules that need the control plane
stay on one worker as well: there is one kube-scheduler for all of them, and a machine starts one control plane. They
and the other tests with real servers take most of the time, so they come first; the many short unit tests come last
and fill whichever worker is free.
"""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

CONTROL_PLANE: Final = "tests/integration/kubernetes/"
FOLDERS: Final = (CONTROL_PLANE, "tests/integration/", "tests/e2e/", "tests/conformance/", "tests/")
"""The folders in the order in which they are handed out."""


def find_position(nodeid: str) -> int:
    """Find the position of the test's folder in ``FOLDERS``."""
    return next((position for position, folder in enumerate(FOLDERS) if nodeid.startswith(folder)), len(FOLDERS))


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist is untyped
    """Hands out whole modules, and the modules of the control plane as one."""

    def _split_scope(self, nodeid: str) -> str:
        module: str = nodeid.split("::", 1)[0]
        return CONTROL_PLANE if module.startswith(CONTROL_PLANE) else module
