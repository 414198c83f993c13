"""Servers that the tests of this folder may kill and change, and a worker on them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedded
from tests.support.backends import chosen
from tests.support.harness.pipeline_process import Pipeline, pipeline


@pytest.fixture(scope="module")
def servers() -> Iterator[embedded.Backends]:
    if chosen(os.environ) != "embedded":
        pytest.skip("kills servers and reads whole topics, which it may do only to its own")
    with embedded.backends() as servers:
        yield servers


@pytest.fixture
def running(servers: embedded.Backends, tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(tmp_path, servers) as running:
        running.start()
        running.wait_ready()
        yield running
