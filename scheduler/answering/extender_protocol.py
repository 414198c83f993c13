"""The extender protocol's bodies (k8s.io/kube-scheduler/extender/v1), read and written as HAMi v2.10 does. Pure.

Go's structs carry no JSON tags: field names are Go's, read without regard to case, and nulls are always written.
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from engine.fit.judge.request.pod_request import count_containers
from engine.fit.manifests import derive_uid
from runtime.settings.names import find_label_problem, find_subdomain_problem
from scheduler.bind.bind_request import BindRequest
from schemas.json_types import Json

NO_BODY: Final = "Please send a request body"
NO_POD: Final = "extender args missing pod"
_NAME_RULES: Final = {
    "PodNamespace": find_label_problem,
    "PodName": find_subdomain_problem,
    "Node": find_subdomain_problem,
}
"""The names in a bind call, each with the rule of its kind."""
_QUOTED: Final = 80
MAX_NODES: Final = 100_000
"""Twenty times as many as Kubernetes supports in a cluster."""
MAX_CONTAINERS: Final = 10_000
"""Limit of a pod's containers; pods with more are refused. Parsing costs about 15 µs per container."""


class UnusableBodyError(ValueError):
    """The body can't be understood; the text goes into the answer's Error."""


@dataclass(frozen=True, slots=True)
class FilterRequest:
    """`nodes`: Node objects by name where kube-scheduler sends those (nodeCacheCapable false), else None."""

    pod: Json
    node_names: tuple[str, ...]
    nodes: Mapping[str, Json] | None = None

    def hand_back(self, names: Sequence[str]) -> bytes:
        """Encode the reply with these nodes, as names or whole nodes, in the form in which they were offered."""
        if self.nodes is None:
            return encode_filter_reply(names)
        return encode_filter_reply(nodes=[self.nodes[name] for name in names])


def read_filter(body: bytes) -> FilterRequest:
    """Read the arguments of a filter call. Raises `UnusableBodyError`."""
    fields = _parse_fields(body)
    pod = fields.get("pod")
    if pod is None:
        raise UnusableBodyError(NO_POD)
    nodes = fields.get("nodes")
    names = _parse_names(fields.get("nodenames"))
    # kube-scheduler fills one of the two, by its `nodeCacheCapable`.
    if nodes is None or names:
        return _filter_request(pod, names)
    nodes_by_name = _parse_nodes(nodes)
    return _filter_request(pod, tuple(nodes_by_name), nodes_by_name)


def _filter_request(pod: Any, names: tuple[str, ...], nodes: Mapping[str, Json] | None = None) -> FilterRequest:
    request = FilterRequest(_check_pod(pod), names, nodes)
    if len(names) > MAX_NODES:
        raise UnusableBodyError(f"{len(names)} nodes are offered, {MAX_NODES} are judged at most")
    if (containers := count_containers(request.pod)) > MAX_CONTAINERS:
        raise UnusableBodyError(
            f"the pod has {containers} containers, more than {MAX_CONTAINERS}: divide it into several pods"
        )
    return request


def read_bind(body: bytes) -> BindRequest:
    """Read the arguments of a bind call. Raises `UnusableBodyError`."""
    outer = _parse_fields(body)
    fields = {name: outer.get(name.lower()) or "" for name in ("PodNamespace", "PodName", "PodUID", "Node")}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise UnusableBodyError(f"{name} is not a string")
    for name, problem_of in _NAME_RULES.items():
        _refuse_name(name, fields[name], problem_of)
    # Derived as in a cluster file without UIDs, so that both mean the same pod.
    uid = fields["PodUID"] or derive_uid(fields["PodNamespace"], fields["PodName"])
    return BindRequest(fields["PodNamespace"], fields["PodName"], uid, fields["Node"])


def _parse_fields(body: bytes) -> Json:
    """Parse the outer object, with lower-case names."""
    try:
        fields = parse_body(body)
    except orjson.JSONDecodeError as error:
        raise UnusableBodyError(f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise UnusableBodyError("the body is not a JSON object")
    return {name.lower(): value for name, value in fields.items()}


def _refuse_name(field: str, name: str, problem_of: Callable[[str], str | None]) -> None:
    # The name becomes part of the path at which the API server is asked.
    if problem := problem_of(name):
        raise UnusableBodyError(f"{field} {name[:_QUOTED]!a} {problem}" if name else f"{field} is empty")


def _parse_names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not set(map(type, value)) <= {str}:
        raise UnusableBodyError("NodeNames is not a list of strings")
    # As HAMi, which collects what it finds by the nodes' names.
    return tuple(dict.fromkeys(value))


def _check_pod(pod: Any) -> Json:
    """Check the pod; return it with a namespace and a UID, which an API server always gives."""
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    if not isinstance(metadata, dict):
        raise UnusableBodyError("Pod has no metadata")
    fields = {field: metadata.get(field) or "" for field in ("name", "namespace", "uid")}
    for field, value in fields.items():
        if not isinstance(value, str):
            raise UnusableBodyError(f"Pod.metadata.{field} is not a string")
    fields["namespace"] = fields["namespace"] or "default"
    _refuse_name("Pod.metadata.name", fields["name"], find_subdomain_problem)
    _refuse_name("Pod.metadata.namespace", fields["namespace"], find_label_problem)
    for field in ("annotations", "labels"):
        if not isinstance(metadata.get(field) or {}, dict):
            raise UnusableBodyError(f"Pod.metadata.{field} is not a mapping")
    fields["uid"] = fields["uid"] or derive_uid(fields["namespace"], fields["name"])
    return {**pod, "metadata": {**metadata, **fields}}


def _parse_nodes(nodes: Any) -> dict[str, Json]:
    items = nodes.get("items") if isinstance(nodes, dict) else None
    if items is None:
        return {}
    if not isinstance(items, list):
        raise UnusableBodyError("Nodes.items is not a list")
    for item in items:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise UnusableBodyError("Nodes.items has an item that is not a Node with a name")
    return {item["metadata"]["name"]: item for item in items}


def encode_filter_reply(
    node_names: Sequence[str] | None = None,
    failed: Mapping[str, str] | None = None,
    nodes: Sequence[Json] | None = None,
    error: str = "",
) -> bytes:
    """Encode the reply to a filter call: nodes that fit (by name or whole), reasons by refused node, or an error."""
    reply: bytes = orjson.dumps(
        {
            # Go's NodeList: its metadata is a struct, which is always written.
            "Nodes": None if nodes is None else {"metadata": {}, "items": nodes},
            "NodeNames": node_names,
            "FailedNodes": failed,
            # HAMi leaves it null: nodes in it are not considered for preemption.
            "FailedAndUnresolvableNodes": None,
            "Error": error,
        }
    )
    return reply


def encode_bind_reply(error: str) -> bytes:
    """Encode the reply to a bind call; an empty error means that the pod is bound."""
    reply: bytes = orjson.dumps({"Error": error})
    return reply


def parse_body(body: bytes) -> Any:
    """Parse the body in a time that is linear in its length. Raises `orjson.JSONDecodeError`."""
    # Lists and objects that are made by the million start Python's garbage collector again and again, and it looks at
    # all of them each time: seven seconds for 28 MiB, half a second without it. Nothing in them is garbage.
    gc.disable()
    try:
        return orjson.loads(body)
    finally:
        gc.enable()
