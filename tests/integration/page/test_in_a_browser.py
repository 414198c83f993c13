"""The pages in a real Chromium: accessible, without errors, within the width, and without a request to another host."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from schemas.documents.devices import devices_document
from schemas.events import DevicesJudged
from tests.support.builders.events import STARTED, a_refusal, a_request, a_summary
from tests.support.harness.api_app import Caller
from tests.support.harness.golden_index import attempt, document_hit, golden, golden_index
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.harness.page_server import page_server

CHROMIUM: Final = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}")

POD: Final = "/ui/pods/llm/deepseek-5996b8569d-kgwgx"
LARGE: Final = "/ui/pods/llm/deepseek-a"
HARM: Final = "<img src=x onerror=alert(1)>\u202e\x1b[31m"
PAGES: Final = (
    "/ui",
    "/ui/pending",
    "/ui/search",
    "/ui/findings",
    "/ui/nodes",
    "/ui/nodes/node3?range=30d",
    "/ui/about",
    POD,
    f"{POD}?lang=zh",
    LARGE,
    f"{LARGE}/group?group=0.0.1",
    "/ui/pods/llm/harm",
    "/embed/pod/llm/deepseek-a",
)


def index_with_devices(request: httpx.Request) -> httpx.Response:
    """The golden index, whose device records are those of two nodes of the golden attempt."""
    if "schedulerlog-devices" not in request.url.path:
        return golden_index(request)
    event, value = golden(DevicesJudged, "001")
    assert isinstance(event, DevicesJudged)
    hits = [document_hit(devices_document(event, value), event.id)]
    return httpx.Response(200, json={"hits": {"total": {"value": 1}, "hits": hits}})


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    caller = Caller(index_with_devices)
    names = tuple(f"gpu-{number:04}.cluster.example" for number in range(5000))
    kinds = [a_refusal(CardInsufficientMemory=8), a_refusal(CardTypeMismatch=5, NumaNotFit=2)]
    large = a_summary(names, refusals=kinds, refusal=[int(number < 40) for number in range(5000)], ended_at=STARTED)
    harm = a_summary(
        (HARM,),
        attempt_id="0e" * 16,
        pod=large.pod.model_copy(update={"name": "harm", "uid": "harm"}),
        requests=[a_request(container=HARM)],
        refusals=[a_refusal(**{HARM: 8})],
        constraints={HARM: HARM},
        scheduler=HARM,
    )
    caller.remember(attempt(), large, harm)
    with page_server(caller) as address:
        yield address


class Visit:
    """A page with all that went wrong on it."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.page: Page = context.new_page()
        self.problems: list[str] = []
        self.page.on("console", lambda message: self._note(message.text, is_wrong=message.type in ("error", "warning")))
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("dialog", lambda dialog: self._note(dialog.message))
        self.page.on("request", lambda request: self._note(request.url, is_wrong=not request.url.startswith(address)))

    def _note(self, text: str, *, is_wrong: bool = True) -> None:
        if is_wrong:
            self.problems.append(text)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_pages_are_accessible_and_without_errors(
    browser: Browser, address: str, scheme: Literal["light", "dark"], width: int
) -> None:
    # axe is put into the page, which the policy of the pages does not allow to anything.
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    for path in PAGES:
        visit = Visit(context, address)
        visit.page.goto(address + path)
        # What can be opened counts too; groups of thousands of nodes have pages of their own.
        visit.page.evaluate("document.querySelectorAll('details:not(.group)').forEach((each) => { each.open = true; })")
        visit.page.wait_for_load_state("networkidle")
        found = Axe().run(visit.page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], path
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert visit.problems == [], path
        visit.page.close()
    context.close()


def test_the_policy_allows_all_that_the_pages_need(browser: Browser, address: str) -> None:
    context = browser.new_context()
    for path in (LARGE, "/ui/nodes/node3?range=30d", "/ui/pending", "/ui/pods/llm/harm"):
        visit = Visit(context, address)
        visit.page.goto(address + path, wait_until="networkidle")
        assert visit.problems == [], path
    context.close()


def test_a_group_of_thousands_shows_its_names_when_it_is_opened(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address + LARGE)
    assert page.locator("details.group").count() == 2
    assert page.get_by_text("gpu-0333.cluster.example").count() == 0
    page.locator("details.group summary").first.click()
    page.get_by_text("gpu-0333.cluster.example").wait_for()
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 5000  # a second on a free machine
    page.close()


def test_a_heat_map_is_read_by_keyboard(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address + POD)
    cells, words = page.locator("[data-heat-map] tr").first.locator(".cell"), page.locator("[data-words]")
    assert cells.count() > 1
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    assert cells.nth(1).evaluate("cell => cell === document.activeElement")
    assert words.text_content() == cells.nth(1).get_attribute("title")
    # Tab leaves the map: the cells of thousands of devices are one stop.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('cell')") is False
    page.close()


def test_a_token_is_pasted_once_and_leads_to_the_page_that_was_asked_for(browser: Browser) -> None:
    api = Guarded()
    api.begin()
    api.reviews.caller("alice", READS_LLM)
    with page_server(api) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}{LARGE}")
        page.locator("textarea").fill("wrong")
        page.locator("main button").first.click()
        page.get_by_role("alert").wait_for()
        page.locator("textarea").fill("token-of-alice")
        page.locator("main button").first.click()
        page.get_by_role("heading", name="deepseek-a").wait_for()
        assert page.url == f"{address}{LARGE}"
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{address}{LARGE}")
        assert "/ui/login" in page.url
        context.close()


def test_without_scripts_everything_can_be_reached_by_links(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + LARGE)
    page.locator("details.group summary").first.click()
    page.get_by_role("link", name="The names of these nodes").first.click()
    page.get_by_text("gpu-0333.cluster.example").first.wait_for()
    page.goto(address + POD)
    page.get_by_role("link", name="What would have to change").click()
    assert page.url.endswith("/changes")
    context.close()
