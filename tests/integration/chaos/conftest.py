"""Servers and services that the tests of a module may kill."""

from collections.abc import Iterator

import pytest

from tests.chaos.ground import Ground, ground
from tests.support.reused_backends import reused_backends


@pytest.fixture(scope="module")
def shared_ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with reused_backends.taken() as servers, ground(tmp_path_factory.mktemp("chaos"), servers) as prepared:
        yield prepared
