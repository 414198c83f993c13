"""Every page in a real Chromium: at two widths, light and dark, by keyboard, on paper, and with hostile names."""

from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.support.harness.api_process import Served
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.harness.page_server import page_server
from tests.support.harness.page_views import VIEWS
from tests.support.visitor import Visitor

MAX_WIRE_BYTES: Final = 300_000
NARROW: Final = (390, 320)
"""Pixels: a telephone, and a page that is enlarged four times (WCAG 1.4.10)."""
GUARDED: Final = "/ui/pods/llm/deepseek-a"
_EXCESS: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_FOLDED: Final = (
    "[...document.querySelectorAll('.status')].filter((status) => "
    "status.offsetHeight > 2.5 * parseFloat(getComputedStyle(status).fontSize)).map((status) => status.textContent)"
)
"""Chinese may be folded behind every character: a narrow column would have one below the other."""
_CUT: Final = """[...document.querySelectorAll('select')].filter((select) => {
  const whole = select.cloneNode(true);
  whole.style.cssText = 'width: auto; max-width: none; position: absolute;';
  select.after(whole);
  const wanted = whole.offsetWidth;
  whole.remove();
  return select.checkVisibility() && select.offsetWidth < wanted;
}).map((select) => select.name)"""
"""Choices that are narrower than their longest option."""
_NAMELESS: Final = (
    "[...document.querySelectorAll('table')].filter((table) => table.checkVisibility() && !table.caption && "
    "!table.getAttribute('aria-label')).map((table) => table.outerHTML.slice(0, 120))"
)
_REACHABLE: Final = (
    "[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')]"
    ".filter((node) => node.checkVisibility() && !node.disabled && node.tabIndex >= 0)"
)
_MISSED: Final = f"{_REACHABLE}.filter((node) => !window.reached.has(node)).map((node) => node.outerHTML.slice(0, 120))"
_ONLY_BY_POINTER: Final = (
    f"((listed) => [...document.querySelectorAll('a[href][tabindex=\"-1\"]')].map((link) => link.getAttribute('href'))"
    f".filter((address) => !listed.has(address)))(new Set({_REACHABLE}.map((link) => link.getAttribute('href'))))"
)
"""Bars of a drawing are passed over by Tab where a list has the same links."""


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_both_widths_sends_nothing_elsewhere_and_is_small(visitor: Visitor, view: str) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    visitor.open(VIEWS[view])
    assert visitor.wrong == []
    assert visitor.elsewhere == []
    assert 0 < sum(visitor.wire_bytes) < MAX_WIRE_BYTES
    for width in (1280, *NARROW):
        visitor.page.set_viewport_size({"width": width, "height": 844})
        assert visitor.page.evaluate(_EXCESS) <= 0, width
        assert visitor.page.evaluate(_FOLDED) == [], width
        assert visitor.page.evaluate(_CUT) == [], width
    assert visitor.page.evaluate(_NAMELESS) == []


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_violation_light_or_dark(inspector: Visitor, view: str) -> None:
    inspector.page.set_viewport_size({"width": 1280, "height": 800})
    inspector.page.emulate_media(color_scheme="light")
    inspector.open(VIEWS[view])
    # What can be opened counts too; groups of many nodes are pages of their own.
    inspector.page.evaluate("document.querySelectorAll('details:not(.group)').forEach((node) => { node.open = true; })")
    inspector.page.wait_for_load_state("networkidle")
    assert _find_violations(inspector, None) == []
    inspector.page.emulate_media(color_scheme="dark")
    inspector.page.set_viewport_size({"width": NARROW[-1], "height": 844})
    assert _find_violations(inspector, ["color-contrast", "scrollable-region-focusable", "target-size"]) == []


def _find_violations(inspector: Visitor, rules: list[str] | None) -> list[tuple[str, str]]:
    """Find rule and element of each violation of all rules, or of those that colours and width can break: they take
    half of the time."""
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    violations = Axe().run(inspector.page, options=options).response["violations"]
    return [(violation["id"], violation["nodes"][0]["html"]) for violation in violations]


@pytest.mark.parametrize("view", ["pending", "search", "node", "refused pod", "5,000 nodes", "simulated pod"])
def test_tab_alone_reaches_everything(visitor: Visitor, view: str) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    visitor.open(VIEWS[view])
    visitor.page.evaluate(
        "window.reached = new Set(); addEventListener('focusin', (event) => window.reached.add(event.target))"
    )
    for _ in range(visitor.page.evaluate(f"{_REACHABLE}.length") + 3):
        visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate(_MISSED) == []
    assert visitor.page.evaluate(_ONLY_BY_POINTER) == []


def test_the_heat_map_shows_the_numbers_of_a_device_to_arrow_keys(visitor: Visitor) -> None:
    visitor.open(VIEWS["refused pod"])
    cells = visitor.page.locator("[data-heat-map] .cell")
    cells.first.focus()
    words = visitor.page.locator("[data-heat-map] [data-words]").first
    first = words.text_content()
    visitor.page.keyboard.press("ArrowRight")
    assert words.text_content() not in (first, "")
    assert words.text_content() == cells.nth(1).get_attribute("title")
    # Tab leaves the map: the cells of thousands of devices are one stop.
    visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate("document.activeElement.classList.contains('cell')") is False


def test_a_click_on_the_map_of_all_nodes_opens_their_group(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    visitor.open(VIEWS["5,000 nodes"])
    visitor.page.locator(".node-map [data-group='2']").click()
    visitor.page.locator("details.group").nth(2).locator("ul.names li").first.wait_for()
    assert visitor.page.locator("details.group[open]").count() == 1


def test_a_group_of_nodes_opens_in_place(visitor: Visitor) -> None:
    visitor.open(VIEWS["5,000 nodes"])
    group = visitor.page.locator("details.group").first
    group.locator("summary").focus()
    visitor.page.keyboard.press("Enter")
    group.locator("ul.names li").first.wait_for()
    assert group.locator("ul.names li").count() > 10
    assert visitor.wrong == []
    assert sum(visitor.wire_bytes) < MAX_WIRE_BYTES


@pytest.mark.parametrize("view", ["hostile names", "findings", "pending by pod", "node", "search"])
def test_hostile_names_are_text(visitor: Visitor, view: str) -> None:
    visitor.open(VIEWS[view])
    for group in visitor.page.locator("details.group").all():
        group.locator("summary").click()
    visitor.page.wait_for_load_state("networkidle")
    assert visitor.page.evaluate("window.harmed") is None
    text = visitor.page.content()
    assert not set(text) & set("\x1b\u202e\u2066")
    assert visitor.page.locator("main img, main script").count() == 0
    assert visitor.wrong == []


def test_a_pasted_pod_is_answered_on_the_same_page_and_can_be_changed_and_sent_again(visitor: Visitor) -> None:
    visitor.open(VIEWS["simulate"])
    pod = Path("examples/pods/2-gpu-pod-default.yaml").read_text("utf-8")
    for count, words in ((5, "refused"), (4, "fits")):
        text = visitor.page.locator("textarea").input_value() or pod
        visitor.page.locator("textarea").fill(text.replace("nvidia.com/gpu: 5", f"nvidia.com/gpu: {count}"))
        visitor.page.get_by_role("button", name="Simulate").click()
        visitor.page.locator("#answer h2 .status").get_by_text(words).wait_for()
    assert visitor.wrong == []


def test_hostile_names_are_shown(visitor: Visitor) -> None:
    visitor.open(VIEWS["hostile names"])
    text = visitor.page.locator("main").inner_text()
    assert "<script>window.harmed=1</script>" in text
    assert "\\x1b[31mred" in text
    assert "\\u202edetrever" in text


def test_without_scripts_the_answer_and_every_name_are_there(visitor: Visitor, api: Served) -> None:
    with visitor.page.context.browser.new_context(java_script_enabled=False) as context:  # type: ignore[union-attr]
        page = context.new_page()
        page.goto(visitor.origin + VIEWS["5,000 nodes"])
        group = page.locator("details.group").first
        group.locator("summary").click()
        group.locator("a").first.click()
        page.locator("ul.names li").nth(10).wait_for()
        page.goto(visitor.origin + VIEWS["refused pod"])
        page.get_by_role("link", name="What would have to change").click()
        page.wait_for_url("**/changes")
        page.goto(visitor.origin + VIEWS["refused pod"])
        page.get_by_role("link", name="Change it and simulate").click()
        page.get_by_role("button", name="Simulate").click()
        page.locator("#answer h2 .status").get_by_text("refused").wait_for()


def test_a_token_is_pasted_once_and_leads_to_the_page_that_was_asked_for(browser: Browser) -> None:
    api = Guarded()
    api.begin()
    api.reviews.build_header("alice", READS_LLM)
    with page_server(api) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}{GUARDED}")
        page.locator("textarea").fill("wrong")
        page.locator("main button").first.click()
        page.get_by_role("alert").wait_for()
        page.locator("textarea").fill("token-of-alice")
        page.locator("main button").first.click()
        page.get_by_role("heading", name="deepseek-a").wait_for()
        assert page.url == f"{address}{GUARDED}"
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{address}{GUARDED}")
        assert "/ui/login" in page.url
        context.close()
