"""The path of each answer below ``/api/v1``, and the same path in the aggregated API (docs/api.md). Pure."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

ROOT: Final = "/api/v1"
AGGREGATED: Final = "/apis/schedulerlog.io/v1alpha1"
_POD: Final = re.compile(r"(/namespaces/[^/]+/pods/[^/]+)(/.+)?")
_NODE: Final = re.compile(r"(/nodes/[^/]+)(/.+)?")
_OWN: Final = "/schedulerlog"
_REPORTS: Final = {"/reports/failures": "/reports"}
"""Lists there, so that a namespace can give the right."""


def of_pod(namespace: str, name: str, answer: str) -> str:
    """``answer`` is ``diagnosis``, ``schedulerlog/history``, …"""
    return f"/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/{answer}"


def of_node(node: str, answer: str = "") -> str:
    """``answer`` is ``occupancy``, or empty: the node itself."""
    return f"/nodes/{quote(node, safe='')}" + (f"/{answer}" if answer else "")


def with_query(path: str, query: Mapping[str, str]) -> str:
    """The path with its parameters; those without a value are left out."""
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def aggregated(path: str, query: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The path and the parameters in the aggregated API, where rights are those of ``schedulerlog`` of pod or node."""
    left = dict(query)
    if found := _POD.fullmatch(path):
        rest = (found[2] or "").removeprefix(_OWN)
        return AGGREGATED + found[1] + _OWN + rest, left
    if found := _NODE.fullmatch(path):
        return AGGREGATED + found[1] + _OWN + (found[2] or ""), left
    path = _REPORTS.get(path, path)
    # The API server asks for the right in that namespace, which more people have than that in all of them.
    if path.count("/") == 1 and (namespace := left.pop("namespace", "")):
        return f"{AGGREGATED}/namespaces/{quote(namespace, safe='')}{path}", left
    return AGGREGATED + path, left
