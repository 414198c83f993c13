"""Texts that kubectl writes for people, as objects: ``kubectl describe`` of pods and nodes, ``kubectl get events``.

A description leaves much out (the pods' extended resources on a node, affinity), so that it answers less than the
objects themselves; what it does not hold is absent here too. Ages of events count back from the time of the text.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zlib import crc32

from engine.diagnosis.layers.statements import KAI_QUOTA_REASONS
from engine.hami.reason_codes import ReasonCode
from ingest.cases.described_kinds import DESCRIBED, find_kind, to_described
from ingest.cases.described_objects import parse_fields
from ingest.cases.description_sections import (
    Section,
    build_metadata,
    divide_sections,
    list_container_statuses,
    list_containers,
    read_field,
    to_timestamp,
)
from schemas.json_types import Json

_BEGINS: Final = re.compile(rb"\A\s*Name:[ \t]+\S", re.MULTILINE)
ASSIGNED: Final = re.compile(
    r"Successfully assigned (?:pod )?(?:(?P<namespace>[^\s/]+)/)?(?P<name>\S+) to (?:node )?(?P<node>[^\s,]+)"
)
_HEADER: Final = re.compile(rb"\A\s*(?:NAMESPACE +)?LAST SEEN +TYPE +REASON +OBJECT +", re.MULTILINE)
_KUBECTL_FIELDS: Final = (b"\nNamespace:", b"\nRoles:", b"\nLabels:")
_EVENT: Final = re.compile(
    r"^\s+(?P<type>Normal|Warning)\s+(?P<reason>\S+)\s+(?P<age>\S+(?: \(x\d+ over \S+\))?)\s+(?P<from>\S+)"
    r"\s+(?P<note>.*)$"
)
_GAP: Final = re.compile(r" {2,}")
_AGE: Final = re.compile(r"(\d+)([dhmsy])")
_TIMES: Final = re.compile(r"\(x(\d+) over (\S+)\)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 31_536_000}
_DIVIDER: Final = re.compile(r"\n\s*\n\s*\n(?=Name:)")
_LATER_LINE: Final = re.compile(r"(?:\d+ |[a-z])\S* ")
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Terminating")
_OF_PODS: Final = frozenset(("Node", "Priority", "Service Account"))
"""Fields before the containers that kubectl prints of pods only."""
_UNPLACED: Final = re.compile(r"^\s+(?:Normal|Warning)\s+FailedScheduling\s")
"""Row of an event that schedulers write on pods only."""
KINDS: Final = {
    "pod": "Pod", "node": "Node", "job": "Job", "replicaset": "ReplicaSet", "statefulset": "StatefulSet",
    "daemonset": "DaemonSet", "deployment": "Deployment", "podgroup": "PodGroup", "pg": "PodGroup",
    "workload": "Workload",
    "persistentvolumeclaim": "PersistentVolumeClaim", "resourceclaim": "ResourceClaim",
    "raycluster": "RayCluster", "rayjob": "RayJob", "jobset": "JobSet", "leaderworkerset": "LeaderWorkerSet",
    "pytorchjob": "PyTorchJob", "tfjob": "TFJob", "mpijob": "MPIJob", "trainjob": "TrainJob",
}  # fmt: skip
_HAMI_EVENTS: Final = (
    ReasonCode.FILTERING_FAILED, ReasonCode.FILTERING_SUCCEED, ReasonCode.BINDING_FAILED, ReasonCode.BINDING_SUCCEED
)  # fmt: skip
_REPORTERS: Final = {
    **dict.fromkeys(("FailedScheduling", "Scheduled", "Preempted"), "the scheduler"),
    **dict.fromkeys(map(str, _HAMI_EVENTS), "hami-scheduler"),
    **dict.fromkeys(("TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp"), "cluster-autoscaler"),
    **dict.fromkeys(("UnexpectedAdmissionError", "Evicted", "FailedMount", "Failed", "BackOff"), "kubelet"),
    **dict.fromkeys(("FailedCreatePodSandBox", "FailedPrepareDynamicResources"), "kubelet"),
    **dict.fromkeys(("FailedPostStartHook", "FailedCreatePodContainer", "InspectFailed"), "kubelet"),
    **dict.fromkeys(("TopologyAffinityError", "SMTAlignmentError", "NodeAffinity"), "kubelet"),
    **dict.fromkeys((*KAI_QUOTA_REASONS, "QueueDoesNotExist"), "kai-scheduler"),
    "Nominated": "karpenter",
}  # fmt: skip
"""By reason, who writes such events; several schedulers write the same."""
_REISSUED: Final = re.compile(r"Reissued from (?P<kind>pod)/(?P<name>[a-z0-9][\w.-]*): (?P<note>.*)", re.DOTALL)
"""Words before an event that a controller repeats on its own object, such as Kubeflow's of notebooks."""
AGE: Final = "age"
"""Field of events of which only an age is known; no event of a cluster has it."""
_KARPENTERS_WORDS: Final = ("Failed to schedule pod, ", "incompatible with nodepool")


def has_descriptions(head: bytes) -> bool:
    """Tell from its first bytes whether a text is a description or a table of events."""
    return bool(_HEADER.match(head)) or bool(_BEGINS.match(head) and any(name in head for name in _KUBECTL_FIELDS))


def parse_descriptions(content: str, written_at: datetime) -> list[Json]:
    """Parse all descriptions of a text, or its table of events, as objects; ``written_at``: when kubectl ran."""
    content = content.replace("\r\n", "\n")
    if _HEADER.match(content[:1000].encode()):
        return list(_parse_table(content.strip("\n").split("\n"), written_at))
    return [entry for part in _DIVIDER.split(content) for entry in parse_description(part, written_at)]


def parse_description(part: str, written_at: datetime) -> Iterator[Json]:
    lines = _join_messages(part.split("\n"))
    sections = divide_sections(lines)
    name = sections.get("Name", Section()).text
    if not name:
        return
    is_pod = "Containers" in sections or _is_cut_pod(sections)
    kind = find_kind(sections)
    is_node = "Allocatable" in sections or "Roles" in sections
    if is_pod:
        yield _to_pod(name, sections, written_at)
    elif is_node:
        yield _to_node(name, sections)
        yield from _list_pods_on_node(name, sections)
    elif read_field(sections, "API Version") and kind:
        yield _to_object(name, sections, "\n".join(lines))
    elif kind in DESCRIBED:
        yield to_described(kind, name, sections)
    kind = "Pod" if is_pod else "Node" if is_node else kind
    namespace = read_field(sections, "Namespace")
    for line in sections.get("Events", Section()).lines if kind else ():
        if match := _EVENT.match(line):
            involved = {"kind": kind, "namespace": namespace, "name": name}
            yield build_event(
                match["type"], match["reason"], match["age"], match["from"], match["note"], involved, written_at
            )


def _join_messages(lines: Sequence[str]) -> list[str]:
    """Join a message of several lines: kubectl prints the later ones at the margin, where only fields begin."""
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1][:1].isspace() and _LATER_LINE.match(line):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return joined


def _is_cut_pod(sections: dict[str, Section]) -> bool:
    """Tell whether sections are those of a pod whose description ends before its containers, or lacks most fields."""
    if any(_UNPLACED.match(line) or ASSIGNED.search(line) for line in sections.get("Events", Section()).lines):
        return True
    return read_field(sections, "Status").partition(" ")[0] in _PHASES and not _OF_PODS.isdisjoint(sections)


def _find_assigned(sections: dict[str, Section]) -> str:
    """Find the node of a pod whose description lacks the field, in its events."""
    matches = map(ASSIGNED.search, sections.get("Events", Section()).lines)
    return next((match["node"] for match in matches if match), "")


def _to_pod(name: str, sections: dict[str, Section], written_at: datetime) -> Json:
    node = read_field(sections, "Node").partition("/")[0] if "Node" in sections else _find_assigned(sections)
    status: dict[str, Any] = {"phase": read_field(sections, "Status").partition(" ")[0]}
    for key in ("Reason", "Message"):
        if text := read_field(sections, key):
            status[key.lower()] = text
    if nominated := read_field(sections, "NominatedNodeName"):
        status["nominatedNodeName"] = nominated
    conditions = (line.split() for line in sections.get("Conditions", Section()).lines)
    status["conditions"] = [
        {"type": words[0], "status": words[1]} for words in conditions if len(words) == 2 and words[0] != "Type"
    ]
    for section, key in (("Containers", "containerStatuses"), ("Init Containers", "initContainerStatuses")):
        started = to_timestamp(read_field(sections, "Start Time"), written_at)
        if statuses := list_container_statuses(sections.get(section, Section()).lines, started):
            status |= {key: statuses, "startTime": started}
    spec: dict[str, Any] = {
        "containers": list_containers(sections.get("Containers", Section()).lines),
        "initContainers": list_containers(sections.get("Init Containers", Section()).lines),
        "nodeSelector": sections.get("Node-Selectors", Section()).collect_pairs("="),
        "tolerations": [_to_toleration(text) for text in sections.get("Tolerations", Section()).list_texts()],
        "volumes": _list_volumes(sections.get("Volumes", Section()).lines),
    }
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": build_metadata(name, sections), "spec": spec, "status": status,
    }  # fmt: skip


def _to_object(name: str, sections: dict[str, Section], part: str) -> Json:
    """Convert the description of an object of any other kind, whose status is described like its fields."""
    fields = parse_fields([line for line in part.partition("\nEvents:")[0].split("\n") if not line.startswith("Name")])
    metadata = {**build_metadata(name, sections), **_build_object_metadata(fields.get("metadata"))}
    spec, status = (fields[key] if isinstance(fields.get(key), dict) else {} for key in ("spec", "status"))
    for condition in status.get("conditions", ()):
        # kubectl prints the status of a condition as a word, which YAML would read as a truth value.
        condition["status"] = str(condition.get("status", ""))
    return {
        "apiVersion": fields["apiVersion"], "kind": fields["kind"], "metadata": metadata, "spec": spec,
        "status": status,
    }  # fmt: skip


def _build_object_metadata(described: Any) -> dict[str, Any]:
    fields = described if isinstance(described, dict) else {}
    return {key: fields[key] for key in ("creationTimestamp", "uid", "ownerReferences") if fields.get(key)}


def _to_toleration(text: str) -> Json:
    """Convert ``KEY=VALUE:EFFECT op=Exists for 300s`` as kubectl writes it."""
    what, *more = text.split()
    key, has_effect, effect = what.partition(":")
    name, has_value, value = key.partition("=")
    is_exists = "op=Exists" in more or not has_value
    toleration = {"key": name, "operator": "Exists" if is_exists else "Equal"}
    if has_value:
        toleration["value"] = value
    if has_effect:
        toleration["effect"] = effect
    return toleration


def _list_volumes(lines: Sequence[str]) -> list[Json]:
    volumes: list[Json] = []
    for line in lines:
        name, _, text = line.strip().partition(":")
        if len(line) - len(line.lstrip()) == 2:
            volumes.append({"name": name})
        elif volumes and name == "ClaimName":
            volumes[-1]["persistentVolumeClaim"] = {"claimName": text.strip()}
    return volumes


def _to_node(name: str, sections: dict[str, Section]) -> Json:
    amounts = {
        key.lower(): section.collect_pairs(":") for key in ("Capacity", "Allocatable") if (section := sections.get(key))
    }
    conditions = [
        {"type": words[0], "status": words[1]}
        for line in sections.get("Conditions", Section()).lines
        if len(words := line.split()) > 2 and words[1] in ("True", "False", "Unknown")
    ]
    spec = {
        "taints": [_to_taint(text) for text in sections.get("Taints", Section()).list_texts()],
        "unschedulable": read_field(sections, "Unschedulable") == "true",
    }
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": build_metadata(name, sections), "spec": spec,
        "status": {**amounts, "conditions": conditions},
    }  # fmt: skip


def _to_taint(text: str) -> Json:
    what, _, effect = text.rpartition(":")
    key, _, value = what.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _list_pods_on_node(node: str, sections: dict[str, Section]) -> Iterator[Json]:
    """List the node's pods with their CPU and memory: the description does not have their other resources."""
    for line in sections.get("Non-terminated Pods", Section()).lines:
        words = line.split()
        # NAMESPACE NAME CPU (SHARE) CPU-LIMIT (SHARE) MEMORY (SHARE) MEMORY-LIMIT (SHARE) AGE
        if len(words) >= 10 and words[3].startswith("("):
            requests = {"cpu": words[2], "memory": words[6]}
            yield {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": words[0], "name": words[1]},
                "spec": {"nodeName": node, "containers": [{"name": "all", "resources": {"requests": requests}}]},
                "status": {"phase": "Running"},
            }  # fmt: skip


def build_event(
    kind: str, reason: str, age: str, reporter: str, note: str, involved: dict[str, str], written_at: datetime
) -> Json:
    if repeated := find_repeated(note):
        of_kind, of_name, note = repeated
        involved, reporter = {**involved, "kind": of_kind, "name": of_name}, choose_reporter(reason, note)
    times = _TIMES.search(age)
    last = written_at - _parse_age(age.partition(" ")[0])
    first = written_at - _parse_age(times[2]) if times else last
    return {
        "apiVersion": "v1", "kind": "Event", "type": kind, "reason": reason, "message": note,
        # Of two events with one reason at one time both count.
        "metadata": {"name": f"{involved['name']}.{reason}.{last:%s}.{crc32(note.encode()):x}",
                     "namespace": involved["namespace"] or "default"},
        "involvedObject": involved, "source": {"component": reporter}, "count": int(times[1]) if times else 1,
        AGE: age,
        "firstTimestamp": f"{first.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "lastTimestamp": f"{last.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }  # fmt: skip


def find_repeated(note: str) -> tuple[str, str, str] | None:
    """Find the event that a controller repeats: the kind and the name of its object, and its words."""
    match = _REISSUED.match(note)
    return (KINDS[match["kind"]], match["name"], match["note"]) if match else None


def _parse_age(text: str) -> timedelta:
    return timedelta(seconds=sum(int(count[:9]) * _SECONDS[unit] for count, unit in _AGE.findall(text)))


def _parse_table(lines: Sequence[str], written_at: datetime) -> Iterator[Json]:
    """Parse the rows below the header: names that were replaced in a copy leave cells next to their column."""
    header = lines[0]
    names = re.findall(r"\S+(?: \S+)*", header)
    starts = [header.index(name) for name in names]
    rows = []
    for line in lines[1:]:
        ends = [*starts[1:], len(line)]
        cells = _GAP.split(line.strip(), len(names) - 1)
        if len(cells) < len(names):
            # An empty cell: only the columns tell which.
            cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        rows.append(dict(zip(names, cells, strict=True)))
    # Without a column of namespaces all rows are of one, which the scheduler's words may name.
    assigned = (match["namespace"] for row in rows if (match := ASSIGNED.match(row["MESSAGE"])))
    namespace = next(filter(None, assigned), "default")
    for row in rows:
        kind, _, name = row.get("OBJECT", "").partition("/")
        if name:
            involved = {"kind": KINDS.get(kind, kind), "namespace": row.get("NAMESPACE", namespace), "name": name}
            source = row.get("SOURCE", "").partition(",")[0] or choose_reporter(row["REASON"], row["MESSAGE"])
            yield build_event(
                row["TYPE"], row["REASON"], row["LAST SEEN"], source, row["MESSAGE"], involved, written_at
            )


def choose_reporter(reason: str, message: str) -> str:
    """Choose the reporter of an event by its reason, for tables without a column for it; empty where many write it."""
    if reason == "FailedScheduling" and message.startswith(_KARPENTERS_WORDS):
        return "karpenter"
    if reason == "Unschedulable":
        return "volcano" if "tasks in gang" in message else "kai-scheduler"
    if reason.startswith("OutOf"):
        return "kubelet"
    return _REPORTERS.get(reason, "")
