"""What can go wrong with an API server, named for what the caller must do.

KubeConfigError    no usable kubeconfig or service account: a person must mend it
ApiError           one request was refused or got no answer
"""

from typing import Any, Final

import orjson

NO_ANSWER: Final = 0
"""The status of a request that got no answer at all."""


class KubeConfigError(Exception):
    """How to reach the API server is not known; the text names the file and the flaw."""


class ApiError(Exception):
    """The API server refused or failed. The text is its own message."""

    def __init__(self, status: int, message: str, retry_after_seconds: float = 0) -> None:
        super().__init__(message)
        self.status, self.retry_after_seconds = status, retry_after_seconds

    @property
    def is_missing(self) -> bool:
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """The object has changed since it was read: read it again, then retry."""
        return self.status == 409

    @property
    def is_expired(self) -> bool:
        """The version to go on from is too old: list anew."""
        return self.status == 410

    @property
    def is_unsure(self) -> bool:
        """A write may or may not have taken place: read the object to know."""
        return self.status == NO_ANSWER or self.status >= 500


def missing(kind: str, name: str) -> ApiError:
    """What an API server says about an object that is not there."""
    return ApiError(404, f'{kind} "{name}" not found')


def error_of(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error that a reply of status 400 or above stands for: the message of its `Status`, else the text itself."""
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
    return ApiError(status, _message(body) or f"the API server answered {status}", seconds)


def _message(body: bytes) -> str:
    try:
        said: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace").strip()[:500]
    message = said.get("message") if isinstance(said, dict) else None
    return message if isinstance(message, str) else ""
