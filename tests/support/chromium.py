"""One Chromium for a test run: that of the machine, or Debian's, which ``.ci/chromium`` brings."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips the test, with the reason, where there is none."""
    lookup = subprocess.run([".ci/chromium"], capture_output=True, text=True)
    if lookup.returncode:
        pytest.skip(lookup.stderr.strip())
    # Its sandbox refuses root, as whom tests run in containers; it shows our own pages alone.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=lookup.stdout.split("\n")[0], args=arguments)
        try:
            yield browser
        finally:
            browser.close()
