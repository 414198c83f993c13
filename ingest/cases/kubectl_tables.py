"""Tables of `kubectl get` in pasted texts: pods that do not run, sets of daemons, claims, Jobs and Kueue's Workloads.

A table has no reason of a pod that waits, and healthy pods say nothing; what it shows of a cluster's own parts explains
why others wait. Rows of pods are recognised without their header too, which a search (`grep`) leaves out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from ingest.cases.pasted_fragments import UNKNOWN_NODE
from schemas.json_types import Json

_HEADER: Final = re.compile(r"^\s*(?:NAMESPACE +)?NAME +[A-Z]+(?: [A-Z]+)? +[A-Z]")
_COLUMN: Final = re.compile(r"\S+(?: \S+)*")
_POD_ROW: Final = re.compile(
    r"^\s*(?:(?P<namespace>[a-z0-9][a-z0-9-]*)\s+)?(?:pods?/)?(?P<name>[a-z0-9][a-z0-9.-]*)\s+(?P<ready>\d+/\d+)\s+"
    r"(?P<status>[A-Z][\w.:/-]*(?: [A-Z][\w.:/-]*)*)\s+(?P<restarts>\d+)(?: \([^)]* ago\))?"
    # Some copies end before the age.
    r"(?:\s+\S*\d[smhdy]\S*(?:\s+\S+\s+(?P<node>[a-z]\S*))?|\s*$)"
)
_NOT_STARTED: Final = re.compile(
    r"(?:Init:)?(?:CrashLoopBackOff|ImagePullBackOff|ErrImagePull|ErrImageNeverPull|InvalidImageName|RunContainerError|"
    r"Create(?:Container|ContainerConfig)Error|StartError|ContainerCannotRun)"
)
_ENDED_BADLY: Final = re.compile(r"(?:Init:)?(?:Error|OOMKilled)")
_AFTER_RUN: Final = ("CrashLoopBackOff", "Error", "OOMKilled")
"""States of a container that has run."""
_REJECTED: Final = re.compile(
    r"UnexpectedAdmissionError|TopologyAffinityError|SMTAlignmentError|OutOf\S+|Evicted|NodeAffinity"
)
_ADMISSIONS: Final = frozenset(("RESERVED IN", "ADMITTED BY"))
"""Columns of Kueue's table of Workloads, up to 0.5 and since."""
_OF_JOB: Final = re.compile(r"job-(?P<name>.+)-[0-9a-f]{5}")
_FEWEST_CELLS: Final = 3


def parse_table(lines: Sequence[str], start: int, namespace: str, written_at: datetime) -> tuple[list[Json], int]:
    """Parse the table that begins in a line, and count its lines; none where no table begins there.

    ``namespace``: that of the command before it; a column of the table comes first. ``written_at``: when kubectl ran.
    """
    if row := _parse_pod_row(lines[start], namespace, f"{written_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"):
        return row, 1
    if not _HEADER.match(lines[start]):
        return [], 0
    columns = [(match.start(), match[0]) for match in _COLUMN.finditer(lines[start])]
    build = _choose_builder({name for _, name in columns})
    end = start + 1
    objects: list[Json] = []
    while build and end < len(lines) and lines[end].strip() and not lines[end].lstrip().startswith(("$", "#", "```")):
        fields = _divide(lines[end], columns)
        if len(fields) < (_FEWEST_CELLS if build in _WITH_GAPS else len(columns) - 1):
            break
        objects += build({"NAMESPACE": namespace, **fields})
        end += 1
    return objects, end - start if objects else 0


def find_waiting_pod(line: str, namespace: str) -> tuple[str, str] | None:
    """Find the pod of a row that has no node yet: its namespace (that of the command unless a column has it), name."""
    match = _POD_ROW.match(line)
    if match is None or match["status"] != "Pending" or match["node"]:
        return None
    return match["namespace"] or namespace, match["name"]


def _divide(line: str, columns: Sequence[tuple[int, str]]) -> dict[str, str]:
    """Divide a row by the columns of its header, below which kubectl aligns the cells."""
    ends = [*(begin for begin, _ in columns[1:]), len(line)]
    cells = {name: line[begin:end].strip() for (begin, name), end in zip(columns, ends, strict=True)}
    return {name: cell for name, cell in cells.items() if cell}


def _choose_builder(names: set[str]) -> Callable[[Mapping[str, str]], list[Json]] | None:
    if {"READY", "DESIRED", "NODE SELECTOR"} <= names:
        return _build_daemons
    if {"STATUS", "VOLUME", "STORAGECLASS"} <= names:
        return _build_claim
    if {"STATUS", "COMPLETIONS"} <= names:
        return _build_job
    if "QUEUE" in names and names & _ADMISSIONS:
        return _build_workload
    return None


def _parse_pod_row(line: str, namespace: str, time: str) -> list[Json] | None:
    """Parse the row of a pod; an empty list for one that runs or waits, None for another line."""
    match = _POD_ROW.match(line)
    if match is None:
        return None
    # Up to 1.18 kubelets wrote "Topology Affinity Error".
    status = match["status"].replace(" ", "")
    reason = status.removeprefix("Init:")
    metadata = {"name": match["name"], "namespace": match["namespace"] or namespace or "default"}
    node = match["node"] or UNKNOWN_NODE
    if _REJECTED.fullmatch(status):
        state: dict[str, Any] = {"phase": "Failed", "reason": status, "message": ""}
    elif _NOT_STARTED.fullmatch(status) or _ENDED_BADLY.fullmatch(status):
        container: dict[str, Any] = {"restartCount": int(match["restarts"])}
        container["state"] = {"waiting": {"reason": reason}}
        if reason in _AFTER_RUN:
            container["lastState"] = {"terminated": {"reason": "Error", "startedAt": time}}
        kind = "initContainerStatuses" if status.startswith("Init:") else "containerStatuses"
        state = {"phase": "Pending", "startTime": time, kind: [container]}
    else:
        return []
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": state}]


def _build_daemons(fields: Mapping[str, str]) -> list[Json]:
    """Build a set of daemons that wants no pod; others say nothing."""
    selector = dict(pair.split("=", 1) for pair in fields.get("NODE SELECTOR", "").split(",") if "=" in pair)
    if fields.get("DESIRED") != "0":
        return []
    return [
        {
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": _build_metadata(fields),
            "spec": {"template": {"spec": {"containers": [], "nodeSelector": selector}}},
            "status": {"desiredNumberScheduled": 0},
        }
    ]  # fmt: skip


def _build_claim(fields: Mapping[str, str]) -> list[Json]:
    spec = {"storageClassName": fields.get("STORAGECLASS", ""), "volumeName": fields.get("VOLUME", "")}
    status = {"phase": fields["STATUS"]}
    metadata = _build_metadata(fields)
    return [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}]


def _build_job(fields: Mapping[str, str]) -> list[Json]:
    """Build a Job that is suspended; others make their pods."""
    if fields["STATUS"] != "Suspended":
        return []
    wanted = fields.get("COMPLETIONS", "").rpartition("/")[2]
    pods = int(wanted) if wanted.isdecimal() else 1
    spec = {"suspend": True, "parallelism": pods, "template": {"spec": {"containers": [{"name": "main"}]}}}
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": _build_metadata(fields), "spec": spec, "status": {}}]


def _build_workload(fields: Mapping[str, str]) -> list[Json]:
    """Build a Workload of Kueue; its name begins with the kind of its owner and ends with a hash."""
    queue = fields.get("RESERVED IN") or fields.get("ADMITTED BY") or ""
    is_admitted = fields.get("ADMITTED") == "True" or "ADMITTED BY" in fields
    metadata = _build_metadata(fields)
    if owner := _OF_JOB.fullmatch(fields["NAME"]):
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": owner["name"], "controller": True}
        ]
    states = {"QuotaReserved": bool(queue), "Admitted": is_admitted, "Finished": fields.get("FINISHED") == "True"}
    conditions = [{"type": kind, "status": str(state), "reason": "", "message": ""} for kind, state in states.items()]
    status = {"conditions": conditions, **({"admission": {"clusterQueue": queue}} if queue else {})}
    return [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": metadata,
            "spec": {"queueName": fields.get("QUEUE", "")}, "status": status,
        }
    ]  # fmt: skip


_WITH_GAPS: Final = (_build_job, _build_workload)
"""Tables of which kubectl leaves cells empty."""


def _build_metadata(fields: Mapping[str, str]) -> dict[str, Any]:
    return {"name": fields["NAME"], "namespace": fields["NAMESPACE"] or "default"}
