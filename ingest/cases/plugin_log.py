"""Pods in the log of HAMi's device plugin, which prints the annotations of each pod that it serves."""

import re
from collections.abc import Iterable
from typing import Any, Final

from engine.hami.annotations import ASSIGNED_NODE
from ingest.cases.pasted_fragments import UNKNOWN_NODE
from schemas.json_types import Json

_SERVED: Final = re.compile(
    r"Allocate pod name is (?P<namespace>[^\s/]+)/(?P<name>[^\s,]+), annotation is map\[(?P<annotations>.*)\]\s*$"
)
_ANNOTATION: Final = re.compile(r"(?P<key>[a-z0-9][\w.-]*/[\w.-]+):(?P<value>.*?)(?= [a-z0-9][\w.-]*/[\w.-]+:|$)")
"""An annotation as Go prints it: only the next key ends its value."""


def list_served_pods(lines: Iterable[str]) -> list[Json]:
    """List the pods that a plugin serves, each with its annotations and its node at the last time."""
    pods: dict[tuple[str, str], Json] = {}
    for line in lines:
        if match := _SERVED.search(line):
            annotations = {pair["key"]: pair["value"] for pair in _ANNOTATION.finditer(match["annotations"])}
            pods[match["namespace"], match["name"]] = _build_pod(match["namespace"], match["name"], annotations)
    return list(pods.values())


def _build_pod(namespace: str, name: str, annotations: dict[str, str]) -> Json:
    metadata: dict[str, Any] = {"namespace": namespace, "name": name, "annotations": annotations}
    spec = {"nodeName": annotations.get(ASSIGNED_NODE, UNKNOWN_NODE)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
