"""The first page, local times and the columns of a pod in a real Chromium, over the examples' cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser

from tests.support.harness.example_api import build_caller
from tests.support.harness.page_server import page_server
from tests.support.visitor import Visitor

POD = "/ui/pods/default/gpu-pod-default"


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with page_server(build_caller("2-gpu-pod-default")) as address:
        yield address


def open_page(browser: Browser, origin: str, path: str, **options: str) -> Visitor:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en", **options)  # type: ignore[arg-type]
    visitor = Visitor(context.new_page(), origin)
    visitor.watch()
    visitor.open(path)
    return visitor


def test_the_field_completes_names_and_enter_goes_there(browser: Browser, origin: str) -> None:
    visitor = open_page(browser, origin, "/ui")
    visitor.page.locator("input[name=q]").press_sequentially("gpu-pod")
    option = visitor.page.locator("#names option").first
    option.wait_for(state="attached")
    assert option.get_attribute("value") == "default/gpu-pod-default"
    visitor.page.fill("input[name=q]", "default/gpu-pod-default")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url(f"**{POD}")
    visitor.page.context.close()


def test_the_field_works_without_scripts(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{origin}/ui")
        page.fill("input[name=q]", "gpu-pod-defualt")
        page.keyboard.press("Enter")
        page.locator("a[data-name='default/gpu-pod-default']").click()
        page.wait_for_url(f"**{POD}")
        # Without a script a time is in UTC, and the page says so.
        assert page.locator(".meta time").first.inner_text() == "2026-11-23 09:30:00"
        assert "UTC" in page.locator("footer").inner_text()


def test_times_are_local_with_utc_on_hover(browser: Browser, origin: str) -> None:
    visitor = open_page(browser, origin, POD, timezone_id="Asia/Shanghai")
    tried = visitor.page.locator(".meta time").first
    assert tried.inner_text() == "2026-11-23 17:30:00"
    assert tried.get_attribute("title") == "2026-11-23 09:30:00 UTC"
    assert "Asia/Shanghai" in visitor.page.locator("footer").inner_text()
    visitor.page.context.close()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_an_axis_has_its_ticks_at_round_times_of_the_reader(browser: Browser, origin: str, zone: str) -> None:
    visitor = open_page(browser, origin, POD, timezone_id=zone)
    visitor.page.locator("svg.ticks text").first.wait_for()
    ticks = visitor.page.evaluate(
        "[...document.querySelectorAll('svg.ticks')].map((axis) => [axis.dataset.since, axis.dataset.until, "
        "[...axis.querySelectorAll('text')].map((text) => [parseFloat(text.getAttribute('x')), "
        "text.firstChild.textContent, text.querySelector('title').textContent])])"
    )
    ((since, until, labels),) = ticks
    begin, end = (datetime.fromisoformat(time) for time in (since, until))
    # The pod has waited for days since 2026-11-23 09:30 UTC: a tick is a day or several, at midnight of the reader.
    assert len(labels) >= 2
    for percent, label, title in labels:
        moment = datetime.fromisoformat(title.removesuffix(" UTC")).replace(tzinfo=UTC)
        assert percent == pytest.approx((moment - begin) / (end - begin) * 100, abs=0.01)
        local = moment.astimezone(ZoneInfo(zone))
        assert (local.strftime("%m-%d"), local.hour, local.minute) == (label, 0, 0)
    visitor.page.context.close()


def test_a_time_in_a_sentence_is_local_too(browser: Browser, origin: str) -> None:
    visitor = open_page(browser, origin, POD, timezone_id="Asia/Shanghai")
    text = visitor.page.locator("main").inner_text()
    assert "When it was tried at 2026-11-23 17:30:00:" in text
    assert "09:30:00" not in text
    visitor.page.context.close()


def test_answer_and_map_are_side_by_side_on_a_wide_screen(browser: Browser, origin: str) -> None:
    visitor = open_page(browser, origin, POD)
    visitor.page.locator("#changes .cards").wait_for()
    edges = "(selector) => (({ left, top }) => [left, top])(document.querySelector(selector).getBoundingClientRect())"
    (left, top), (right, level) = (visitor.page.evaluate(edges, name) for name in ("#changes", "#nodes"))
    assert right > left + 500
    assert abs(level - top) < 60
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    (left, top), (right, level) = (visitor.page.evaluate(edges, name) for name in ("#changes", "#nodes"))
    assert left == right
    assert level > top
    visitor.page.context.close()
