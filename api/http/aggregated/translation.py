"""Translation of the aggregated API: its paths to those below ``/api/v1``, and errors to a ``Status``. Pure.

Answers about a pod or a node lie below its ``schedulerlog``, so that the API server asks for the same right as this
API: ``pods/schedulerlog`` in the pod's namespace, ``nodes/schedulerlog``.
"""

import re
from http import HTTPStatus
from typing import Final, NamedTuple

import orjson

from api.http.cluster import AGGREGATED, ROOT
from api.http.errors import derive_code

_POD: Final = re.compile(r"(/namespaces/[^/]+/pods/[^/]+)/schedulerlog(?:/(.+))?", re.ASCII)
_NODE: Final = re.compile(r"(/nodes/[^/]+)/schedulerlog(/.+)?", re.ASCII)
_WORKLOAD: Final = re.compile(r"(/namespaces/[^/]+/workloads)/([^/:]+):([^/:]+)", re.ASCII)
"""A workload has one name there, ``job:train``: the API server takes a further part for a subresource."""
_IN_NAMESPACE: Final = re.compile(r"/namespaces/([^/]+)/([^/]+)", re.ASCII)
_ATTEMPT: Final = re.compile(r"/attempts/[^/]+(/.+)?", re.ASCII)
_LIST: Final = re.compile(r"/[^/]+", re.ASCII)
_RESOURCES: Final = {"reports": "reports/failures", "simulations": "simulate"}
"""Resources to which the API server can grant a right, to the paths of their answers."""
_OF_EVERY_CLUSTER: Final = "/clusters"
"""List without a path here: the API server decides only about its own cluster."""


class TranslatedPath(NamedTuple):
    path: str
    namespace: str = ""
    """Namespace of the path, which becomes a parameter."""


def translate_path(path: str) -> TranslatedPath | None:
    """Translate a path of the aggregated API; None for a path that it does not have."""
    remainder = path.removeprefix(AGGREGATED)
    if remainder == path:
        return None
    if match := _POD.fullmatch(remainder):
        pod, part = match.groups()
        # The history lies below the schedulerlog here, too.
        below = f"/{part}" if part and part != "history" else "/schedulerlog" + (f"/{part}" if part else "")
        return TranslatedPath(ROOT + pod + below)
    if match := _WORKLOAD.fullmatch(remainder):
        return TranslatedPath("/".join((ROOT + match[1], match[2], match[3])))
    if match := _NODE.fullmatch(remainder):
        return TranslatedPath(ROOT + match[1] + (match[2] or ""))
    if match := _IN_NAMESPACE.fullmatch(remainder):
        return TranslatedPath(f"{ROOT}/{_RESOURCES.get(match[2], match[2])}", match[1])
    if remainder != _OF_EVERY_CLUSTER and (_LIST.fullmatch(remainder) or _ATTEMPT.fullmatch(remainder)):
        return TranslatedPath(f"{ROOT}/{_RESOURCES.get(remainder[1:], remainder[1:])}")
    return None


def to_status(code: int, body: bytes) -> bytes:
    """Translate an error of this API into a ``Status`` of Kubernetes, which kubectl prints."""
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
        "reason": derive_code(code),
        "code": code,
    }
    return orjson.dumps(status)
