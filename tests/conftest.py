"""Fixtures for every test: a real Kafka and OpenSearch, shared by the whole run or of one's own."""

import atexit
import functools
import gc
import os
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import httpx._transports.default as transports
import pytest
import typer.testing
import yaml

from dev import embedded
from runtime.cli import lazy_commands
from runtime.files.scratch import LOCK, locate_scratch_root, remove_left_behind, scratch_folder
from tests.support.backends import Addresses, start_backends
from tests.support.cpu_table import CpuTable
from tests.support.reused_backends import reused_backends
from tests.support.side_by_side import ModuleScheduling, find_position
from tests.support.stress import load_profile

_LEFT_BEHIND = pytest.StashKey[list[str]]()
_TEMPORARY = pytest.StashKey[ExitStack]()


def pytest_configure(config: pytest.Config) -> None:
    """Set what every test relies on."""
    # What a shell starts in the background ignores SIGINT, and so would every process that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # At its end Python would look for garbage twice among all that is still there.
    atexit.register(gc.freeze)
    load_profile()
    config.pluginmanager.register(CpuTable(), "cpu_table")
    _load_certificates_once()
    # Manifests and configurations are read some thousand times; libyaml takes a tenth of the time of Python's parser.
    setattr(yaml, "SafeLoader", yaml.CSafeLoader)
    # CliRunner builds the commands of an application for each call, which takes as long as most calls.
    built = functools.cache(typer.main.get_command)
    setattr(typer.testing, "_get_command", built)
    setattr(lazy_commands, "get_command", built)
    if not hasattr(config, "workerinput"):
        # One temporary folder for the whole run: what is in it at the end was left behind by our own processes.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        config.stash[_TEMPORARY] = ExitStack()
        temporary = config.stash[_TEMPORARY].enter_context(scratch_folder("tests"))
        tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)


def _load_certificates_once() -> None:
    """Load the certificates once: httpx loads 150 of them for each client, and so for each ``httpx.get``, also without
    TLS.

    That takes 44 ms of CPU. A test that waits asks ten times a second, and would slow what it waits for.
    """
    setattr(transports, "create_ssl_context", functools.cache(httpx.create_ssl_context))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when anything of ours stays in the temporary folder."""
    reused_backends.close()
    if hasattr(session.config, "workerinput"):
        return
    remove_left_behind()
    temporary = Path(tempfile.gettempdir())
    ours = {temporary / LOCK, locate_scratch_root(), locate_scratch_root() / LOCK}
    left = sorted(str(path) for path in temporary.rglob("*") if path not in ours)
    session.config.stash[_LEFT_BEHIND] = left
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    session.config.stash[_TEMPORARY].close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Freeze what is imported and collected, so that the garbage collector does not look at it again.

    Each full collection would walk those 400,000 objects, which takes a third of a second, some twenty times in the
    tests of one worker. It looks at new objects after every 20,000, as in our commands, rather than after every 700.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the longest first, so that the workers end at about the same time: see tests/support/side_by_side.py."""
    items.sort(key=lambda item: find_position(item.nodeid))
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("stress")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    config.option.loadscopereorder = False  # the order is that of the hook above
    return ModuleScheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was left behind, and what was measured, also where tests print nothing."""
    if left := config.stash.get(_LEFT_BEHIND, []):
        terminalreporter.section("left behind in the temporary folder", red=True)
        for path in left[:20]:
            terminalreporter.write_line(path)
        if len(left) > 20:
            terminalreporter.write_line(f"and {len(left) - 20} more, the last one {left[-1]}")
    reports = [report for report in terminalreporter.stats.get("passed", []) if report.when == "call"]
    if lines := [text for report in reports for name, text in report.user_properties if name == "measured"]:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def backends() -> Iterator[Addresses]:
    """One Kafka and one OpenSearch for all tests, started when the first test asks: use names that nobody else uses."""
    with start_backends() as addresses:
        yield addresses


@pytest.fixture
def own_backends() -> Iterator[Callable[..., embedded.Backends]]:
    """Gives servers, running and empty, that this test alone has and may kill: ``own_backends(only="kafka")``."""
    with ExitStack() as stack:
        yield lambda **how: stack.enter_context(reused_backends.taken(**how))


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a line with a measured figure, which the end of the run shows."""
    return lambda line: request.node.user_properties.append(("measured", line))
