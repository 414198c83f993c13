"""Servers and services that the tests of a module may kill."""

import os
from collections.abc import Iterator

import pytest

from tests.chaos.ground import Ground, ground
from tests.support.backends import chosen


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    if chosen(os.environ) != "embedded":
        pytest.skip("kills servers, which it may do only to its own")
    with ground(tmp_path_factory.mktemp("chaos")) as made:
        yield made
