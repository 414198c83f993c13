"""Fixtures for every test: a real Kafka and OpenSearch, shared by the whole run or of one's own."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import embedded
from tests.support.backends import SETTING, Addresses, addresses, chosen


def pytest_configure() -> None:
    """What a shell starts in the background ignores SIGINT, and so would every process that the tests interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def backends() -> Iterator[Addresses]:
    """One Kafka and one OpenSearch for all tests, started when the first test asks: use names that nobody else uses."""
    with addresses() as found:
        yield found


@pytest.fixture
def own_backends() -> Iterator[Callable[..., embedded.Backends]]:
    """Starts servers that this test alone may kill: ``own_backends(brokers=3, only="kafka")``, as embedded.backends."""
    if chosen(os.environ) != "embedded":
        pytest.skip(f"kills servers, which it may do only to its own: needs {SETTING}=embedded")
    with ExitStack() as stack:
        yield lambda **how: stack.enter_context(embedded.backends(**how))
