"""Fragments in pasted texts: descriptions without their first lines, a pod's conditions, rows that a terminal wrapped.

A copy often leaves out the name of what it shows. The pod of a fragment has the name that an event in it gives, else
the name of all unnamed pods; a node has its host name, else that of an unnamed node.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from engine.snapshot import kinds
from ingest.cases.descriptions import ASSIGNED, build_event, parse_description
from ingest.cases.unnamed_pods import DEFAULT_NAME
from schemas.json_types import Json

UNKNOWN_NODE: Final = "?"
"""Name of a node that the text does not name."""
UNNAMED_WORKLOAD: Final = "workload"
"""Name of a Workload that the text does not name."""
_FIELD: Final = re.compile(
    r"^(?P<indent> *)(?P<name>Namespace|Priority|Node|Start Time|Labels|Annotations|Status|Reason|Controlled By|"
    r"Containers|Init Containers|Addresses|Capacity|Allocatable):(?:\s|$)"
)
_NEXT_FIELD: Final = re.compile(r"[A-Z][\w./ -]*:(?:\s|$)")
_HOST_NAME: Final = re.compile(r"^\s+Hostname:\s+(?P<name>\S+)", re.MULTILINE)
_OF_PODS: Final = frozenset(("Status", "Node", "Annotations", "Controlled By", "Start Time", "Priority"))
_OF_NODES: Final = frozenset(("Capacity", "Allocatable"))
_CONDITION_FIELDS: Final = frozenset(("type", "status"))
_OF_POD: Final = frozenset(("PodScheduled", "ContainersReady", "DisruptionTarget"))
_OF_WORKLOAD: Final = frozenset(("QuotaReserved", "Admitted"))
_OF_NODE_CLAIM: Final = frozenset(("Launched", "Registered"))
"""Types of conditions that tell the objects of these kinds apart."""
_TOLERANCE: Final = 4
"""Columns by which full lines of a terminal differ: tabs and wide letters count for more than one."""
_MIN_WRAPPED: Final = 60
"""Characters of the shortest line that a terminal is taken to have wrapped."""


def parse_fragment(lines: Sequence[str], start: int, written_at: datetime) -> tuple[list[Json], int]:
    """Parse the description without a name that begins in a line, and count its lines; none where none begins."""
    first = _FIELD.match(lines[start])
    if first is None:
        return [], 0
    indent, end = first["indent"], start + 1
    while end < len(lines) and _continues(lines[end], indent):
        end += 1
    part = [line.removeprefix(indent) for line in lines[start:end]]
    names = {match["name"] for line in part if (match := _FIELD.match(line)) and not match["indent"]}
    text = "\n".join(part)
    if "Containers" in names and names & _OF_PODS:
        return _parse_pod(text, written_at), end - start
    if names & _OF_NODES:
        host = _HOST_NAME.search(text)
        name = host["name"] if host else UNKNOWN_NODE
        nodes: list[Any] = list(parse_description(f"Name: {name}\nRoles: <none>\n{text}", written_at))
        status = nodes[0]["status"]
        status.setdefault("allocatable", status.get("capacity", {}))
        return nodes, end - start
    return [], 0


def _continues(line: str, indent: str) -> bool:
    """Tell whether a line belongs to the description: one of its fields, or what stands further in."""
    remainder = line.removeprefix(indent)
    return (
        line.startswith(indent)
        and bool(remainder.strip())
        and (remainder[0] == " " or bool(_NEXT_FIELD.match(remainder)))
    )


def _parse_pod(text: str, written_at: datetime) -> list[Json]:
    assigned = ASSIGNED.search(text)
    name, namespace = (assigned["name"], assigned["namespace"] or "") if assigned else (DEFAULT_NAME, "")
    head = f"Name: {name}\n" + (f"Namespace: {namespace}\n" if namespace and "Namespace:" not in text else "")
    objects: list[Any] = list(parse_description(head + text, written_at))
    for entry in objects:
        if entry["kind"] == kinds.POD and assigned:
            entry["spec"].setdefault("nodeName", assigned["node"])
    return objects


def build_from_status(document: Any, name: str) -> Json | None:
    """Build the object of which only the status, or its list of conditions, was pasted; None for an unknown kind."""
    if isinstance(document, list) and document and all(map(_is_condition, document)):
        document = {"status": {"conditions": document}}
    if isinstance(document, dict) and document.keys() == {"conditions"}:
        document = {"status": document}
    if isinstance(document, dict) and document.keys() <= {"state", "lastState"}:
        document = {"status": {"phase": "Pending", "containerStatuses": [{"name": DEFAULT_NAME, **document}]}}
    status = document.get("status") if isinstance(document, dict) else None
    if not isinstance(status, dict):
        return None
    conditions = [entry for entry in status.get("conditions") or () if _is_condition(entry)]
    types = {str(entry["type"]) for entry in conditions}
    metadata = {"namespace": "default", "name": name}
    if isinstance(status.get("phase"), str) or types & _OF_POD:
        status = {"phase": "Pending"} | status
        # Only a kubelet writes of containers.
        spec = {"nodeName": UNKNOWN_NODE} if status.get("containerStatuses") else {}
        return {"apiVersion": "v1", "kind": kinds.POD, "metadata": metadata, "spec": spec, "status": status}
    if types & _OF_WORKLOAD:
        return build_workload("default", UNNAMED_WORKLOAD, status)
    unmet = next((entry for entry in conditions if entry["status"] != "True" and entry.get("message")), None)
    if types >= _OF_NODE_CLAIM and unmet:
        involved = {"kind": "NodeClaim", "namespace": "", "name": "nodeclaim"}
        reason, note = str(unmet.get("reason", "")), str(unmet["message"])
        return build_event("Warning", reason, "0s", "karpenter", note, involved, datetime.now(UTC))
    return None


def build_workload(namespace: str, name: str, status: Any) -> Json:
    """Build Kueue's Workload of which only the status is known."""
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": metadata, "status": status}


def _is_condition(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.keys() >= _CONDITION_FIELDS


def join_wrapped(line: str, following: str, longest: int) -> str:
    """Join a line and the next one, if a terminal broke the line in the middle of a word; else return the line.

    A terminal breaks at its width, where the longest lines of the text end, and begins the next line with what is left.
    ``longest``: the length of the longest line.
    """
    is_full = len(line) >= max(longest - _TOLERANCE, _MIN_WRAPPED) and not line[-1].isspace()
    return line + following if is_full and following[:1].islower() else line
