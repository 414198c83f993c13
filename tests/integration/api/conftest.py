"""One API for all tests that only read: on a real topic and a real index, which hold what other tests wrote as well."""

from collections.abc import Iterator

import pytest

from tests.support.backends import Addresses
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import Filling
from tests.support.waiting import until


@pytest.fixture(scope="package")
def filling(backends: Addresses) -> Filling:
    filling = Filling(backends.bootstrap_servers, backends.opensearch_url)
    filling.provision()
    return filling


@pytest.fixture(scope="package")
def api(filling: Filling) -> Iterator[Served]:
    with serving(filling.bootstrap_servers, filling.url) as api:
        assert until(api.is_ready)
        yield api
