"""Messages of a watch to a webhook: when what decides about a pod changes, and when it is placed.

The message is Slack's ``{"text": …}``, which other chats take as well. The state at the start is no news, so that a
watch that is started again repeats nothing.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cli.terminal.exit_codes import USAGE
from cli.terminal.screen import complain
from runtime.cli.cli import fail
from runtime.settings import addresses

TRIES: Final = 5
_TIMEOUT_SECONDS: Final = 10.0
_BUSY: Final = 429
_SERVER_ERROR: Final = 500


class Notices:
    """Sends a message for each news about one pod."""

    def __init__(self, url: str, page_url: str = "", sleep: Callable[[float], None] = time.sleep) -> None:
        """Send to ``url``; ``page_url``: page of the pod, empty for none."""
        self._url, self._page_url, self._sleep = url, page_url, sleep
        self._latest: tuple[str, str] | None = None

    def send_news(self, diagnosis: Mapping[str, Any]) -> None:
        """Send the diagnosis if its state or its decisive obstacle is another one than before."""
        obstacle = diagnosis["obstacle"]
        news = diagnosis["state"], obstacle["code"] if obstacle else ""
        if self._latest not in (None, news):
            self._send(write_message(diagnosis, self._page_url))
        self._latest = news

    def _send(self, text: str) -> None:
        """Send a message; tried again while the receiver is down or busy, and reported if it takes none."""
        body = json.dumps({"text": text}).encode()
        for number in range(TRIES):
            if number:
                self._sleep(2.0 ** (number - 1))
            problem, is_final = self._post(body)
            if not problem:
                return
            if is_final:
                break
        complain(f"The webhook did not take the message: {problem}.")

    def _post(self, body: bytes) -> tuple[str, bool]:
        """Post once; returns the problem, empty for none, and whether another try can't help."""
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310 - checked
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS):  # noqa: S310 - checked when it was read
                return "", True
        except urllib.error.HTTPError as error:
            return f"it answers {error.code}", error.code != _BUSY and error.code < _SERVER_ERROR
        except OSError as error:
            return str(error), False


def write_message(diagnosis: Mapping[str, Any], page_url: str) -> str:
    """Write the pod, the first line of its answer, and the page that has the rest."""
    text = f"{diagnosis['namespace']}/{diagnosis['name']}: {diagnosis['headline']['en']}"
    return f"{text}\n{page_url}" if page_url else text


def read_webhook(file: Path) -> str:
    """Read the address of a webhook from a file, because everybody with the address may post; ends on a mistake."""
    try:
        return addresses.parse_url(file.read_text("utf-8").strip(), "https://hooks.example/services/T0/B0/x")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        fail(f"--webhook-file: {file}: {error}", USAGE)
