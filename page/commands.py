"""Command lines to copy that give the page's answer: curl on this address, kubectl through the aggregated API, a
terminal."""

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
"""Paths whose resources have another name there."""

_FILTERS: Final = {"obstacle": "--obstacle", "reason": "--reason", "since": "--since"}
_AT_TERMINAL: Final[tuple[tuple[re.Pattern[str], str, Mapping[str, str]], ...]] = (
    (re.compile(r"/namespaces/(.+)/pods/(.+)/diagnosis"), "why", {"attempt": "--attempt", "exclusion": ""}),
    (re.compile(r"/namespaces/(.+)/pods/(.+)/schedulerlog/history"), "history", {"limit": "--limit"}),
    (re.compile(r"/nodes/([^/]+)"), "node", {"at": "--at"}),
    (re.compile("/pending"), "list --pending", {"group_by": "--by"} | _FILTERS),
    (
        re.compile("/schedulerlogs"),
        "list",
        {"q": "--search", "status": "--status"} | _FILTERS,
    ),
    (
        re.compile("/trends"),
        "trends",
        {"by": "--by", "count": "--count", "since": "--since", "until": "--until"},
    ),
    (re.compile("/alerts"), "alerts", {"state": "--state", "rule": "--rule"}),
    (re.compile("/reports/failures"), "report", {"since": "--since", "until": "--until", "lang": "--lang"}),
)
"""Path, command, and the option of each parameter; an empty option is the command's default."""


def write_curl(origin: str, path: str, *, has_token: bool, file: str = "") -> str:
    """Write the curl command.

    ``has_token``: callers send a token; the command takes it from the shell, so that no history has it. ``file`` is the
    body.
    """
    header = '-H "Authorization: Bearer $TOKEN" ' if has_token else ""
    body = f"-H 'Content-Type: application/yaml' --data-binary {shlex.quote('@' + file)} " if file else ""
    return f"curl {header}{body}{shlex.quote(origin + path)}"


def write_kubectl(path: str) -> str:
    """Write the command for a path of the API; empty for a path that the aggregated API does not have."""
    return f"kubectl get --raw {shlex.quote(aggregated)}" if (aggregated := _to_aggregated(path)) else ""


def write_kubectl_simulation(path: str, namespace: str, file: str) -> str:
    """Write the command that sends the pod of ``file``; empty for another cluster than the API server's own."""
    if path != "/api/v1/simulate":
        return ""
    raw = f"{AGGREGATED}/namespaces/{namespace}/simulations"
    return f"kubectl create --raw {shlex.quote(raw)} -f {shlex.quote(file)}"


def write_terminal_command(path: str) -> str:
    """Write the terminal's command for a path of the API; empty if no command has all of its parameters."""
    bare, _, query = path.removeprefix("/api/v1").partition("?")
    parameters = dict(parse_qsl(query))
    for pattern, command, options in _AT_TERMINAL:
        if match := pattern.fullmatch(bare):
            names = [shlex.quote("/".join(match.groups()))] if match.groups() else _list_namespace_option(parameters)
            if set(parameters) <= {*options, "namespace"}:
                arguments = [
                    part for name, value in parameters.items() for part in _list_option(options.get(name, ""), value)
                ]
                return " ".join(["schedulerlog", command, *names, *arguments])
    return ""


def _list_namespace_option(parameters: Mapping[str, str]) -> list[str]:
    return ["-n", shlex.quote(parameters["namespace"])] if parameters.get("namespace") else ["-A"]


def _list_option(name: str, value: str) -> list[str]:
    return [name, shlex.quote(value)] if name else []


def _to_aggregated(path: str) -> str:
    """Convert a path to the aggregated API's (docs/api.md): paths about a pod or a node are below its ``schedulerlog``
    in both."""
    if match := _POD.fullmatch(path):
        pod, tail, query = match.groups()
        below = "" if tail == "schedulerlog" else "/" + tail.removeprefix("schedulerlog/")
        return f"{AGGREGATED}{pod}/schedulerlog{below}{query or ''}"
    if match := _NODE.fullmatch(path):
        node, tail, query = match.groups()
        return f"{AGGREGATED}{node}/schedulerlog{tail or ''}{query or ''}"
    if not (match := _OTHER.fullmatch(path)):
        return ""
    return f"{AGGREGATED}{_RESOURCES.get(match[1], match[1])}{match[2] or ''}"
