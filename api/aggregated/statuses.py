"""An error as a ``Status`` of Kubernetes, which kubectl prints. Pure."""

from http import HTTPStatus

import orjson

from api.http.errors import code_of


def status_of(code: int, body: bytes) -> bytes:
    """``body`` is one of our errors."""
    try:
        error = orjson.loads(body)
        cause, next_step = str(error["error"]), str(error["next"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        cause, next_step = body.decode("utf-8", "replace")[:500] or HTTPStatus(code).phrase, ""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{cause}. {next_step}" if next_step else cause,
        "reason": code_of(code),
        "code": code,
    }
    return orjson.dumps(status)
