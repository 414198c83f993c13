"""The HTML file of a log in Chromium: nothing is cut off, wide or narrow, and its picture in docs/terminal.md."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import chromium

LOG: Final = Path("tests/conformance/cases/logs/048.log")
PICTURE: Final = Path("docs/pictures/log.png")
TEXT: Final = PICTURE.with_suffix(".txt")
"""Text of the page in the picture: it is compared, because letters look different on every machine."""
TAKES_PICTURE: Final = os.environ.get("SCHEDULERLOG_TEST_PICTURE") == "1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "log.html"
    command = [sys.executable, "-m", "schedulerlog", "explain", str(LOG), "ml/job-2302", "--html", str(file)]
    # 1: the pod waits.
    assert subprocess.run(command, check=False, capture_output=True).returncode == 1
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_beside_the_window(
    browser: Browser, page_file: Path, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(number) for number in background.strip("rgb()").split(",")[:3]) < 380) == (scheme == "dark")
    page.close()


def test_the_picture_is_of_the_file_as_it_is(browser: Browser, page_file: Path) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 640}, color_scheme="light")
    page.goto(page_file.as_uri())
    text = "".join(f"{line}\n" for line in page.locator("body").inner_text().splitlines() if line.strip())
    if TAKES_PICTURE:
        PICTURE.write_bytes(page.screenshot(full_page=True))
        TEXT.write_text(text, "utf-8")
    page.close()
    assert text == TEXT.read_text("utf-8"), "the page has changed: take its picture again, as docs/page.md says"
