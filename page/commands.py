"""The same answer as a command line to copy: curl on this address, kubectl through the aggregated API."""

import re
import shlex
from typing import Final

AGGREGATED: Final = "/apis/schedulerlog.io/v1alpha1"
_POD: Final = re.compile(r"/api/v1(/namespaces/[^/]+/pods/[^/?]+)/([^?]+)(\?.*)?")
_NODE: Final = re.compile(r"/api/v1(/nodes/[^/?]+)(/[^?]+)?(\?.*)?")
_OTHER: Final = re.compile(r"/api/v1(/(?!clusters)[^?]+)(\?.*)?")

_RESOURCES: Final = {"/reports/failures": "/reports"}
"""Paths that are resources of another name there."""


def as_curl(origin: str, path: str, *, has_token: bool, file: str = "") -> str:
    """``has_token``: callers send one; it is taken from the shell, so that none stands in a history.

    ``file`` is what is sent.
    """
    header = '-H "Authorization: Bearer $TOKEN" ' if has_token else ""
    body = f"-H 'Content-Type: application/yaml' --data-binary {shlex.quote('@' + file)} " if file else ""
    return f"curl {header}{body}{shlex.quote(origin + path)}"


def as_kubectl(path: str) -> str:
    """The command for a path of the API; empty for one that the aggregated API does not have."""
    return f"kubectl get --raw {shlex.quote(found)}" if (found := _aggregated(path)) else ""


def simulated_by_kubectl(path: str, namespace: str, file: str) -> str:
    """The command that sends the pod of ``file``; empty for another cluster than the API server's own."""
    if path != "/api/v1/simulate":
        return ""
    raw = f"{AGGREGATED}/namespaces/{namespace}/simulations"
    return f"kubectl create --raw {shlex.quote(raw)} -f {shlex.quote(file)}"


def _aggregated(path: str) -> str:
    """docs/api.md: what is about a pod or a node lies below its ``schedulerlog``, of which both API servers know."""
    if found := _POD.fullmatch(path):
        pod, rest, query = found.groups()
        below = "" if rest == "schedulerlog" else "/" + rest.removeprefix("schedulerlog/")
        return f"{AGGREGATED}{pod}/schedulerlog{below}{query or ''}"
    if found := _NODE.fullmatch(path):
        node, rest, query = found.groups()
        return f"{AGGREGATED}{node}/schedulerlog{rest or ''}{query or ''}"
    if not (found := _OTHER.fullmatch(path)):
        return ""
    return f"{AGGREGATED}{_RESOURCES.get(found[1], found[1])}{found[2] or ''}"
