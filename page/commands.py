"""The same answer as a command line to copy: curl on this address, kubectl through the aggregated API, a terminal."""

import re
import shlex
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

AGGREGATED: Final = "/apis/schedulerlog.io/v1alpha1"
_POD: Final = re.compile(r"/api/v1(/namespaces/[^/]+/pods/[^/?]+)/([^?]+)(\?.*)?")
_NODE: Final = re.compile(r"/api/v1(/nodes/[^/?]+)(/[^?]+)?(\?.*)?")
_OTHER: Final = re.compile(r"/api/v1(/(?!clusters)[^?]+)(\?.*)?")

_RESOURCES: Final = {"/reports/failures": "/reports"}
"""Paths that are resources of another name there."""

_AT_TERMINAL: Final[tuple[tuple[re.Pattern[str], str, Mapping[str, str]], ...]] = (
    (re.compile(r"/namespaces/(.+)/pods/(.+)/diagnosis"), "why", {"attempt": "--attempt", "exclusion": ""}),
    (re.compile(r"/namespaces/(.+)/pods/(.+)/schedulerlog/history"), "history", {"limit": "--limit"}),
    (re.compile(r"/nodes/([^/]+)"), "node", {"at": "--at"}),
    (re.compile("/pending"), "list --pending", {"group_by": "--by", "reason": "--reason", "since": "--since"}),
    (
        re.compile("/schedulerlogs"),
        "list",
        {"q": "--search", "reason": "--reason", "status": "--status", "since": "--since"},
    ),
    (
        re.compile("/trends"),
        "trends",
        {"by": "--by", "count": "--count", "since": "--since", "until": "--until"},
    ),
    (re.compile("/reports/failures"), "report", {"since": "--since", "until": "--until", "lang": "--lang"}),
)
"""Path, command and which option a parameter is; an empty one asks for what the command asks for anyway."""


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


def at_terminal(path: str) -> str:
    """The command of the terminal that asks for a path of the API; empty where none has all of its parameters."""
    bare, _, query = path.removeprefix("/api/v1").partition("?")
    parameters = dict(parse_qsl(query))
    for pattern, command, options in _AT_TERMINAL:
        if found := pattern.fullmatch(bare):
            names = [shlex.quote("/".join(found.groups()))] if found.groups() else _namespace(parameters)
            if set(parameters) <= {*options, "namespace"}:
                asked = [part for name, value in parameters.items() for part in _option(options.get(name, ""), value)]
                return " ".join(["schedulerlog", command, *names, *asked])
    return ""


def _namespace(parameters: Mapping[str, str]) -> list[str]:
    return ["-n", shlex.quote(parameters["namespace"])] if parameters.get("namespace") else ["-A"]


def _option(name: str, value: str) -> list[str]:
    return [name, shlex.quote(value)] if name else []


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
