"""Distribution of the tests among the workers of pytest-xdist.

A module stays on one worker, because its tests share servers and processes. The modules that need the control plane go
to two workers, each of which starts a control plane of its own: one worker would need them longer than the others need
for everything else, and a third control plane costs more than it saves. They and the other tests with real servers take
most of the time, so they come first; the many short unit tests come last and fill whichever worker is free.
"""

from typing import Any, Final

from xdist.scheduler import LoadScopeScheduling

CONTROL_PLANE: Final = "tests/integration/kubernetes/"
CONTROL_PLANES: Final = 2
"""Workers that start a control plane."""
FOLDERS: Final = (CONTROL_PLANE, "tests/integration/", "tests/e2e/", "tests/conformance/", "tests/")
"""The folders in the order in which they are handed out."""


def find_position(nodeid: str) -> int:
    """Find the position of the test's folder in ``FOLDERS``."""
    return next((position for position, folder in enumerate(FOLDERS) if nodeid.startswith(folder)), len(FOLDERS))


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist is untyped
    """Hands out whole modules, those of the control plane to the first ``CONTROL_PLANES`` workers that ask.

    Another worker gets one of them only when nothing else is left.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.split("::", 1)[0]

    def _assign_work_unit(self, node: Any) -> None:
        has_control_plane = node in list(self.assigned_work)[:CONTROL_PLANES]
        fitting = (module for module in self.workqueue if module.startswith(CONTROL_PLANE) == has_control_plane)
        if module := next(fitting, None):
            self.workqueue.move_to_end(module, last=False)
        super()._assign_work_unit(node)
