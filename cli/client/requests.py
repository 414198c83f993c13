"""The path of each answer below ``/api/v1``, and the same path in the aggregated API (docs/api.md). Pure."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

ROOT: Final = "/api/v1"
AGGREGATED: Final = "/apis/schedulerlog.io/v1alpha1"
_POD: Final = re.compile(r"(/namespaces/[^/]+/pods/[^/]+)(/.+)?")
_WORKLOAD: Final = re.compile(r"(/namespaces/[^/]+/workloads/[^/]+)/([^/]+)")
_NODE: Final = re.compile(r"(/nodes/[^/]+)(/.+)?")
_SCHEDULERLOG: Final = "/schedulerlog"
_REPORTS: Final = {"/reports/failures": "/reports"}
"""Lists there, so that a namespace can give the right."""


def build_pod_path(namespace: str, name: str, answer: str) -> str:
    """Build the path of an answer about a pod: ``diagnosis``, ``schedulerlog/history``, …"""
    return f"/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/{answer}"


def build_workload_path(namespace: str, word: str, name: str) -> str:
    """Build the path of the answer about a workload; ``word`` names its kind, as ``job``."""
    return f"/namespaces/{quote(namespace, safe='')}/workloads/{quote(word, safe='')}/{quote(name, safe='')}"


def build_node_path(node: str, answer: str = "") -> str:
    """Build the path of an answer about a node: ``occupancy``, or empty for the node itself."""
    return f"/nodes/{quote(node, safe='')}" + (f"/{answer}" if answer else "")


def with_query(path: str, query: Mapping[str, str]) -> str:
    """Append the parameters that have a value."""
    parameters = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(parameters)}" if parameters else path


def to_aggregated(path: str, query: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Convert to the aggregated API, where the subresource ``schedulerlog`` of a pod or node carries the rights."""
    left = dict(query)
    if match := _POD.fullmatch(path):
        subpath = (match[2] or "").removeprefix(_SCHEDULERLOG)
        return AGGREGATED + match[1] + _SCHEDULERLOG + subpath, left
    if match := _WORKLOAD.fullmatch(path):
        return f"{AGGREGATED}{match[1]}:{match[2]}", left
    if match := _NODE.fullmatch(path):
        return AGGREGATED + match[1] + _SCHEDULERLOG + (match[2] or ""), left
    path = _REPORTS.get(path, path)
    # The API server asks for the right in that namespace, which more people have than that in all of them.
    if path.count("/") == 1 and (namespace := left.pop("namespace", "")):
        return f"{AGGREGATED}/namespaces/{quote(namespace, safe='')}{path}", left
    return AGGREGATED + path, left
