"""One API process over a real index, and one Chromium, for all tests of the page."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.integration.page.records import CLUSTER, LARGE, REFUSED, fill
from tests.support.backends import Addresses
from tests.support.chromium import chromium
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import Filling
from tests.support.waiting import until


@pytest.fixture(scope="package")
def api(backends: Addresses) -> Iterator[Served]:
    filling = Filling(backends.bootstrap_servers, backends.opensearch_url)
    filling.provision()
    fill(filling)
    with serving(filling.bootstrap_servers, filling.url, SCHEDULERLOG_CLUSTER_NAME=CLUSTER) as api:
        assert until(api.is_ready)
        assert until(lambda: all(api.schedulerlog(pod).status_code == 200 for pod in (REFUSED, LARGE)))
        yield api


@pytest.fixture(scope="package")
def browser(api: Served) -> Iterator[Browser]:
    # After the API, whose topics are made with asyncio.run: this thread has a loop of Playwright's from now on.
    with chromium() as browser:
        yield browser


@dataclass  # Neither frozen nor slotted: Playwright keeps attributes of its own on the owners of handlers.
class Visitor:
    """A page of the browser, and what went wrong or was sent while it was open."""

    page: Page
    origin: str
    wrong: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    wire_bytes: list[float] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Waits until the parts that come later are there."""
        self.wrong.clear()
        self.wire_bytes.clear()
        answer = self.page.goto(self.origin + path)
        assert answer, path
        assert answer.status == 200, f"{path}: {answer.status}"
        self.page.wait_for_load_state("networkidle")

    def watch(self) -> None:
        self.page.on("console", lambda message: self._logged(message.type, message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self._sent(request.url))
        session = self.page.context.new_cdp_session(self.page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", self._received)

    def _received(self, event: dict[str, Any]) -> None:
        self.wire_bytes.append(event["encodedDataLength"])

    def _logged(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.wrong.append(text)

    def _sent(self, url: str) -> None:
        if not url.startswith((self.origin + "/", "data:")):
            self.elsewhere.append(url)


def _visitor(context: BrowserContext, api: Served) -> Visitor:
    visitor = Visitor(context.new_page(), str(api.client.base_url).rstrip("/"))
    visitor.watch()
    return visitor


@pytest.fixture(scope="package")
def visitor(browser: Browser, api: Served) -> Iterator[Visitor]:
    """As people have it: the page's own policy is in force."""
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en") as context:
        yield _visitor(context, api)


@pytest.fixture(scope="package")
def inspector(browser: Browser, api: Served) -> Iterator[Visitor]:
    """With scripts of axe, which the page's policy would refuse."""
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en", bypass_csp=True) as context:
        yield _visitor(context, api)
