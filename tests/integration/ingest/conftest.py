"""A Kafka, an OpenSearch, a worker and an index writer of these tests' own: they count documents."""

from collections.abc import Iterator

import pytest

from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.reused_backends import reused_backends


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    with reused_backends.taken() as servers, pipeline(tmp_path_factory.mktemp("pipeline"), servers) as running:
        running.start_all()
        yield running
