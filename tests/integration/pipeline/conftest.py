"""Servers that the tests of this folder may kill and change, and a worker and an index writer on them."""

from collections.abc import Iterator

import pytest

from dev import embedded
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.reused_backends import reused_backends


@pytest.fixture(scope="module")
def servers() -> Iterator[embedded.Backends]:
    with reused_backends.taken() as servers:
        yield servers


@pytest.fixture(scope="module")
def provisioned(servers: embedded.Backends, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """Topics and templates as ``provision`` makes them, and where to start processes."""
    with pipeline(tmp_path_factory.mktemp("pipeline"), servers) as provisioned:
        yield provisioned


@pytest.fixture
def running(provisioned: Pipeline) -> Pipeline:
    """The module's worker and index writer, ready. Each test has namespaces of its own."""
    provisioned.put_right()
    return provisioned
