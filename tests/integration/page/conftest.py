"""One API process over a real index, and one Chromium, for all tests of the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.support.backends import Addresses
from tests.support.chromium import chromium
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import Filling
from tests.support.harness.page_records import CLUSTER, LARGE, REFUSED, fill
from tests.support.visitor import Visitor
from tests.support.waiting import until


@pytest.fixture(scope="package")
def api(backends: Addresses) -> Iterator[Served]:
    filling = Filling(backends.bootstrap_servers, backends.opensearch_url)
    filling.provision()
    fill(filling)
    with serving(filling.bootstrap_servers, filling.url, SCHEDULERLOG_CLUSTER_NAME=CLUSTER) as api:
        assert until(api.is_ready)
        assert until(lambda: all(api.get_schedulerlog(pod).status_code == 200 for pod in (REFUSED, LARGE)))
        # Node states are read beside the attempts.
        pod = Path("examples/pods/1-gpu-pod.yaml").read_bytes()
        assert until(lambda: api.client.post("/api/v1/simulate", content=pod).status_code == 200)
        yield api


@pytest.fixture(scope="module")
def browser(api: Served) -> Iterator[Browser]:
    # After the API, whose topics are made with asyncio.run: until the module ends this thread has Playwright's loop,
    # and no other one can run.
    with chromium() as browser:
        yield browser


def _open_visitor(context: BrowserContext, api: Served) -> Visitor:
    visitor = Visitor(context.new_page(), str(api.client.base_url).rstrip("/"))
    visitor.watch()
    return visitor


@pytest.fixture(scope="module")
def visitor(browser: Browser, api: Served) -> Iterator[Visitor]:
    """A visitor with the page's own policy in force, as people have it."""
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en") as context:
        yield _open_visitor(context, api)


@pytest.fixture(scope="module")
def inspector(browser: Browser, api: Served) -> Iterator[Visitor]:
    """With scripts of axe, which the page's policy would refuse."""
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en", bypass_csp=True) as context:
        yield _open_visitor(context, api)
