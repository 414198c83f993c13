"""A Kafka, an OpenSearch, a worker and an index writer of these tests' own: they count documents."""

import os
from collections.abc import Iterator

import pytest

import embedded
from tests.support.backends import chosen
from tests.support.harness.pipeline_process import Pipeline, pipeline


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    if chosen(os.environ) != "embedded":
        pytest.skip("counts documents, which it can do only in an index of its own")
    with embedded.backends() as servers, pipeline(tmp_path_factory.mktemp("pipeline"), servers) as running:
        running.start_all()
        yield running
