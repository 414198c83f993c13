"""CPU seconds of each test module and wall seconds of each worker, as tables at the end of a run.

The time of a test is that of its worker process and of the children that the worker has waited for: servers that stay
up between tests count for the module that stops them, forked services for none. A run takes as long as its longest
worker.
"""

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import PurePath
from typing import Final

import pytest

MODULES: Final = 15
"""Modules in the table, those with the most CPU time first."""
FOLDERS: Final = 4
"""Folders in the line of a worker."""
_PROPERTY: Final = "cpu_seconds"
_STARTED: Final = pytest.StashKey[float]()


def read_cpu_seconds() -> float:
    """Read the CPU time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


class CpuTable:
    """Plugin of pytest that measures tests and prints the table."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._wall_seconds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        """Wall seconds by worker and folder."""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[_STARTED] = read_cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        # The last report of a test: workers of pytest-xdist send its properties to the process that prints.
        if call.when == "teardown" and _STARTED in item.stash:
            report.user_properties.append((_PROPERTY, read_cpu_seconds() - item.stash[_STARTED]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _PROPERTY and isinstance(value, float):
                self._seconds[report.nodeid.split("::", 1)[0]] += value
        node = getattr(report, "node", None)
        if node is not None:
            folder = str(PurePath(report.nodeid.split("::", 1)[0]).parent)
            self._wall_seconds[node.gateway.id][folder] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not (total := sum(self._seconds.values())):
            return
        terminalreporter.section(f"CPU seconds: {total:.0f} in {len(self._seconds)} modules")
        for module, seconds in sorted(self._seconds.items(), key=lambda entry: -entry[1])[:MODULES]:
            terminalreporter.write_line(f"{seconds:8.1f}  {module}")
        for worker, folders in sorted(self._wall_seconds.items()):
            longest = sorted(folders.items(), key=lambda entry: -entry[1])[:FOLDERS]
            parts = ", ".join(f"{folder} {seconds:.0f}" for folder, seconds in longest)
            terminalreporter.write_line(f"{worker}: {sum(folders.values()):.0f} s of tests: {parts}")
