"""The extender protocol's bodies (k8s.io/kube-scheduler/extender/v1), read and written as HAMi v2.10 does. Pure.

Go's structs carry no JSON tags: field names are Go's, read without regard to case, and nulls are always written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from scheduler.bind.bind_request import BindRequest
from scheduler.cluster.manifests import derived_uid

Json = dict[str, Any]

NO_BODY: Final = "Please send a request body"
NO_POD: Final = "extender args missing pod"


class UnusableBodyError(ValueError):
    """The body can't be understood; the text goes into the answer's Error."""


@dataclass(frozen=True, slots=True)
class FilterRequest:
    """`nodes`: Node objects by name where kube-scheduler sends those (nodeCacheCapable false), else None."""

    pod: Json
    node_names: tuple[str, ...]
    nodes: Mapping[str, Json] | None = None

    def hand_back(self, names: Sequence[str]) -> bytes:
        """The reply that these nodes will do, in the form in which they were offered."""
        if self.nodes is None:
            return filter_reply(names)
        return filter_reply(nodes=[self.nodes[name] for name in names])


def read_filter(body: bytes) -> FilterRequest:
    """Raises `UnusableBodyError`."""
    fields = _fields(body)
    pod = fields.get("pod")
    if pod is None:
        raise UnusableBodyError(NO_POD)
    nodes = fields.get("nodes")
    names = _names(fields.get("nodenames"))
    if nodes is None or names:
        return FilterRequest(_pod(pod), names)
    whole = _node_objects(nodes)
    return FilterRequest(_pod(pod), tuple(whole), whole)


def read_bind(body: bytes) -> BindRequest:
    """Raises `UnusableBodyError`."""
    fields = _fields(body)
    said = {name: fields.get(name.lower()) or "" for name in ("PodNamespace", "PodName", "PodUID", "Node")}
    for name, value in said.items():
        if not isinstance(value, str):
            raise UnusableBodyError(f"{name} is not a string")
        if not value and name != "PodUID":
            raise UnusableBodyError(f"{name} is empty")
    uid = said["PodUID"] or derived_uid(said["PodNamespace"], said["PodName"])
    return BindRequest(said["PodNamespace"], said["PodName"], uid, said["Node"])


def _fields(body: bytes) -> Json:
    """The outer object by lower-case names."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnusableBodyError(f"the body is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise UnusableBodyError("the body is not a JSON object")
    return {name.lower(): value for name, value in said.items()}


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not set(map(type, value)) <= {str}:
        raise UnusableBodyError("NodeNames is not a list of strings")
    return tuple(value)


def _pod(pod: Any) -> Json:
    """The pod with a namespace and a UID, which an API server always gives."""
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    if not isinstance(metadata, dict):
        raise UnusableBodyError("Pod has no metadata")
    said = {field: metadata.get(field) or "" for field in ("name", "namespace", "uid")}
    for field, value in said.items():
        if not isinstance(value, str):
            raise UnusableBodyError(f"Pod.metadata.{field} is not a string")
    if not said["name"]:
        raise UnusableBodyError("Pod.metadata.name is empty")
    for field in ("annotations", "labels"):
        if not isinstance(metadata.get(field) or {}, dict):
            raise UnusableBodyError(f"Pod.metadata.{field} is not a mapping")
    said["namespace"] = said["namespace"] or "default"
    said["uid"] = said["uid"] or derived_uid(said["namespace"], said["name"])
    return {**pod, "metadata": {**metadata, **said}}


def _node_objects(nodes: Any) -> dict[str, Json]:
    items = nodes.get("items") if isinstance(nodes, dict) else None
    if items is None:
        return {}
    if not isinstance(items, list):
        raise UnusableBodyError("Nodes.items is not a list")
    for item in items:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise UnusableBodyError("Nodes.items holds what is no Node with a name")
    return {item["metadata"]["name"]: item for item in items}


def filter_reply(
    node_names: Sequence[str] | None = None,
    failed: Mapping[str, str] | None = None,
    nodes: Sequence[Json] | None = None,
    error: str = "",
) -> bytes:
    reply: bytes = orjson.dumps(
        {
            "Nodes": None if nodes is None else {"metadata": {}, "items": nodes},
            "NodeNames": node_names,
            "FailedNodes": failed,
            "FailedAndUnresolvableNodes": None,
            "Error": error,
        }
    )
    return reply


def bind_reply(error: str) -> bytes:
    reply: bytes = orjson.dumps({"Error": error})
    return reply
