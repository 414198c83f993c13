"""Errors of an API server, named for what the caller must do.

KubeConfigError    no usable kubeconfig or service account: a person must repair it
KubeApiError       one request was refused or got no answer
"""

from typing import Any, Final

import orjson

NO_ANSWER: Final = 0
"""Status of a request without an answer."""


class KubeConfigError(Exception):
    """Configuration by which we can't reach the API server; the message names the file and its mistake."""


class KubeApiError(Exception):
    """The API server refused the request or failed; the message is the server's own."""

    def __init__(self, status: int, message: str, retry_after_seconds: float = 0) -> None:
        super().__init__(message)
        self.status, self.retry_after_seconds = status, retry_after_seconds

    @property
    def is_missing(self) -> bool:
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """The object has changed since it was read: read it again, then retry."""
        # Of an update; a create answers 409 too, for a name that exists.
        return self.status == 409

    @property
    def is_expired(self) -> bool:
        """The resourceVersion to continue from is too old: list again."""
        return self.status == 410

    @property
    def is_unsure(self) -> bool:
        """A write may or may not have taken place: read the object to know."""
        # A timeout of etcd behind the API server (500, 504) may come after the write took place.
        return self.status == NO_ANSWER or self.status >= 500


def build_missing_error(kind: str, name: str) -> KubeApiError:
    """Build the error with which an API server answers a request for an object that it does not have."""
    return KubeApiError(404, f'{kind} "{name}" not found')


def build_response_error(status: int, body: bytes, retry_after: str | None = None) -> KubeApiError:
    """Build the error for a response of status 400 or above, with the message of its `Status` object, else with its
    text."""
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
    return KubeApiError(status, _parse_message(body) or f"the API server answered {status}", seconds)


def _parse_message(body: bytes) -> str:
    try:
        body_json: Any = orjson.loads(body)
    # Proxies and load balancers answer with HTML or plain text, not with a ``Status`` object.
    except orjson.JSONDecodeError:
        return body.decode(errors="replace").strip()[:500]
    message = body_json.get("message") if isinstance(body_json, dict) else None
    return message if isinstance(message, str) else ""
