"""Descriptions of Kubernetes' own kinds but pods and nodes: controllers that make pods, and claims of volumes.

kubectl does not print the fields of these kinds by their names, so that each kind is recognised by fields of its own.
"""

import re
from typing import Any, Final

from ingest.cases.description_sections import Section, build_metadata, divide_sections, list_containers, read_field
from schemas.json_types import Json

USED_BY: Final = "usedBy"
"""Field of a described claim that no stored one has: names of the pods that use it."""
_COUNT: Final = re.compile(r"\d+(?= desired)")
_EXISTING: Final = re.compile(r"(\d+) (?:current|total)")
_JOB_PODS: Final = re.compile(r"(\d+) (Active|Succeeded|Failed)")
DESCRIBED: Final = {
    "Job": (("Parallelism", "Pods Statuses"), "batch/v1"),
    "DaemonSet": (("Desired Number of Nodes Scheduled",), "apps/v1"),
    "Deployment": (("StrategyType",), "apps/v1"),
    "StatefulSet": (("Replicas", "Update Strategy"), "apps/v1"),
    "ReplicaSet": (("Replicas", "Pods Status"), "apps/v1"),
    "PersistentVolumeClaim": (("StorageClass", "Access Modes"), "v1"),
}
"""Fields by which the description of a kind is recognised, and the kind's version."""


def find_kind(sections: dict[str, Section]) -> str:
    """Find the kind of a described object; empty for one that is not known by its fields."""
    if read_field(sections, "API Version"):
        return read_field(sections, "Kind")
    named = (kind for kind, (fields, _) in DESCRIBED.items() if all(name in sections for name in fields))
    return next(named, "")


def to_described(kind: str, name: str, sections: dict[str, Section]) -> Json:
    """Convert the description of a kind of Kubernetes itself, which does not print its fields by their names."""
    spec: dict[str, Any] = {}
    metadata = build_metadata(name, sections)
    if kind == "PersistentVolumeClaim":
        spec = {"storageClassName": read_field(sections, "StorageClass"), "volumeName": read_field(sections, "Volume")}
        return {
            "apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec,
            "status": {"phase": read_field(sections, "Status")},
            USED_BY: sections.get("Used By", Section()).list_texts(),
        }  # fmt: skip
    counts = {
        "parallelism": read_field(sections, "Parallelism"),
        "completions": read_field(sections, "Completions"),
        "replicas": (_COUNT.search(read_field(sections, "Replicas")) or [""])[0],
    }
    spec |= {field: int(text) for field, text in counts.items() if text.isdecimal()}
    if read_field(sections, "Suspend") == "true":
        spec["suspend"] = True
    template = [line[2:] for line in sections.get("Pod Template", Section()).lines]
    parts = divide_sections(template)
    spec["template"] = {
        "metadata": build_metadata("", parts),
        "spec": {
            "containers": list_containers([f" {line}" for line in parts.get("Containers", Section()).lines]),
            "nodeSelector": _divide_selector(sections, parts),
        },
    }
    status = _count_pods(sections)
    if (desired := read_field(sections, "Desired Number of Nodes Scheduled")).isdecimal():
        status["desiredNumberScheduled"] = int(desired)
    return {
        "apiVersion": DESCRIBED[kind][1], "kind": kind, "metadata": metadata, "spec": spec, "status": status,
    }  # fmt: skip


def _count_pods(sections: dict[str, Section]) -> dict[str, int]:
    """Count the pods that exist, by the names that the status of the kind has for them."""
    jobs = {name.lower(): int(count) for count, name in _JOB_PODS.findall(read_field(sections, "Pods Statuses"))}
    existing = _EXISTING.search(read_field(sections, "Replicas"))
    return jobs | ({"replicas": int(existing[1])} if existing else {})


def _divide_selector(*described: dict[str, Section]) -> dict[str, str]:
    """Divide the labels of nodes, which kubectl prints in one line, of a template or of a set of daemons."""
    text = next((text for sections in described for name in ("Node-Selector", "Node-Selectors")
                 if (text := read_field(sections, name))), "")  # fmt: skip
    return dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
