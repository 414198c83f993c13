"""Pages on paper, and the picture of one in README."""

import os
import re
from pathlib import Path
from typing import Final

from tests.support.harness.api_process import Served
from tests.support.harness.page_records import REFUSED
from tests.support.harness.page_views import VIEWS
from tests.support.visitor import Visitor

PICTURE: Final = Path("docs/pictures/pod.png")
TEXT: Final = PICTURE.with_suffix(".txt")
"""Text of the page in the picture: it is compared, because letters look different on every machine."""
TAKES_PICTURE: Final = os.environ.get("SCHEDULERLOG_TEST_PICTURE") == "1"
_PASSING: Final = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\(\d+ (?:d|h|min|s)[^)]*\)|\d+ (?:d|h|min|s)[^()]*(?= until now)|127\.0\.0\.1:\d+"
)
_TICK: Final = re.compile(r"\d\d[:-]\d\d(?::\d\d)?")
"""Label of an axis of time: how many there are depends on the moment."""


def test_on_paper_a_pod_has_its_answer_and_address_and_no_bars(visitor: Visitor, api: Served) -> None:
    visitor.open(VIEWS["refused pod"])
    visitor.page.emulate_media(media="print")
    try:
        assert not visitor.page.locator("header.bar").is_visible()
        assert visitor.page.locator(".lead").is_visible()
        # Nobody moves over paper with arrow keys.
        assert not any(element.is_visible() for element in visitor.page.locator("[data-words]").all())
        address = visitor.page.locator(".on-paper").first
        assert address.is_visible()
        assert (address.text_content() or "").startswith(f"{visitor.origin}/ui/pods/{REFUSED}?attempt=")
        # What is folded is on paper too, and folded again afterwards; what is folded twice leaves no line behind.
        folded = visitor.page.locator("main details:not([open], .group, .commands, details details)")
        twice = visitor.page.locator("main details details summary")
        assert twice.count() > 0
        assert folded.count() > 0
        visitor.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert folded.count() == 0
        assert not any(element.is_visible() for element in twice.all())
        assert visitor.page.locator(".obstacle details[open] .reason, .obstacle details[open] code").first.is_visible()
        visitor.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert folded.count() > 0
        assert visitor.page.pdf(format="A4").startswith(b"%PDF")
    finally:
        visitor.page.emulate_media(media="screen")


def test_on_paper_a_simulated_pod_has_its_whole_text_and_a_page_its_address(visitor: Visitor) -> None:
    visitor.open(VIEWS["simulated pod"])
    visitor.page.emulate_media(media="print", color_scheme="dark")
    try:
        assert not visitor.page.locator("textarea").is_visible()
        text = visitor.page.locator("textarea").input_value()
        assert visitor.page.locator("pre.on-paper").inner_text().strip() == text.strip()
        assert visitor.page.locator("footer .on-paper").inner_text() == visitor.origin + VIEWS["simulated pod"]
        # Dark pages are printed on white paper.
        assert visitor.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        visitor.page.emulate_media(media="screen", color_scheme="light")


def test_the_picture_of_the_readme_is_of_the_page_as_it_is(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1100, "height": 800})
    visitor.open(VIEWS["refused pod"])
    # The name of the other language, for which not every machine has letters.
    visitor.page.locator(".corner").evaluate("(corner) => { corner.style.visibility = 'hidden'; }")
    below = visitor.page.locator("#nodes ~ h2").first
    page_text = visitor.page.locator("main").inner_text().partition(f"\n{below.inner_text()}\n")[0]
    lines = [line for line in page_text.splitlines() if line.strip() and not _TICK.fullmatch(line)]
    text = _PASSING.sub("…", "".join(f"{line}\n" for line in lines))
    if TAKES_PICTURE:
        end = below.bounding_box()
        assert end
        visitor.page.set_viewport_size({"width": 1100, "height": int(end["y"])})
        PICTURE.write_bytes(visitor.page.screenshot())
        TEXT.write_text(text, "utf-8")
    assert text == TEXT.read_text("utf-8"), "the page has changed: docs/page.md says how its picture is taken again"
