"""A page of a browser, and what went wrong or was sent while it was open."""

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page


@dataclass  # Neither frozen nor slotted: Playwright keeps attributes of its own on the owners of handlers.
class Visitor:
    """A page of the browser, and what went wrong or was sent while it was open."""

    page: Page
    origin: str
    wrong: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    wire_bytes: list[float] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Open a page, and wait until the parts that come later are there."""
        self.wrong.clear()
        self.wire_bytes.clear()
        answer = self.page.goto(self.origin + path)
        assert answer, path
        assert answer.status == 200, f"{path}: {answer.status}"
        self.page.wait_for_load_state("networkidle")

    def watch(self) -> None:
        self.page.on("console", lambda message: self._note_logged(message.type, message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self._note_sent(request.url))
        session = self.page.context.new_cdp_session(self.page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", self._note_received)

    def _note_received(self, event: dict[str, Any]) -> None:
        self.wire_bytes.append(event["encodedDataLength"])

    def _note_logged(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.wrong.append(text)

    def _note_sent(self, url: str) -> None:
        if not url.startswith((self.origin + "/", "data:")):
            self.elsewhere.append(url)
