"""An error as a ``Status`` of Kubernetes, which kubectl prints. Pure."""

from http import HTTPStatus
from typing import Final

import orjson

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}
"""As k8s.io/apimachinery names them (``metav1.StatusReason``)."""


def status_of(code: int, body: bytes) -> bytes:
    """``body`` is one of our errors."""
    try:
        error = orjson.loads(body)
        cause, next_step = str(error["error"]), str(error["next"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        cause, next_step = body.decode("utf-8", "replace")[:500] or HTTPStatus(code).phrase, ""
    reason = _REASONS.get(code, "InternalError" if code >= 500 else "Unknown")
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{cause}. {next_step}" if next_step else cause,
        "reason": reason,
        "code": code,
    }
    return orjson.dumps(status)
