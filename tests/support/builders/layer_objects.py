"""Builders of clusters in which a layer above or below the scheduler holds a pod, and their diagnosis."""

from datetime import UTC, datetime
from typing import Any

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.outcome import Word
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import collect_objects
from ingest.readers.kube import KubeEvents
from ingest.reading.trusted_reporters import TrustedReporters
from schemas.answers.diagnosis import Diagnosis, InBothLanguages
from schemas.json_types import Json
from tests.support.builders.api_server_objects import list_attempts

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
SCHEDULERS = ("default-scheduler", "volcano", "kai-scheduler", "binder", "koord-scheduler", "slurm-bridge-scheduler")


def a_pod(name: str = "job-0", **more: Any) -> Json:
    """A waiting pod; ``more``: ``refusal`` (message of PodScheduled=False), and fields of metadata, spec and status."""
    metadata = {"namespace": "lab", "name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-11-24T08:00:00Z"}
    spec = {"schedulerName": "default-scheduler", "containers": [{"name": "main", "resources": {}}]}
    status: Json = {"phase": "Pending"}
    if refusal := more.pop("refusal", None):
        condition = {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": refusal,
            "lastTransitionTime": "2026-11-24T08:00:02Z",
        }  # fmt: skip
        status["conditions"] = [condition]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | more.get("metadata", {}),
        "spec": spec | more.get("spec", {}),
        "status": status | more.get("status", {}),
    }


def an_event(reason: str, note: str, *, pod: str = "job-0", **more: Any) -> Json:
    """An event; ``more``: ``reporter``, ``kind`` of its object, ``time``, ``type``."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "lab", "name": f"{pod}.{reason}"},
        "regarding": {"kind": more.get("kind", "Pod"), "namespace": "lab", "name": pod, "uid": ""},
        "reason": reason,
        "note": note,
        "type": more.get("type", "Warning"),
        "reportingController": more.get("reporter", "default-scheduler"),
        "eventTime": more.get("time", "2026-11-24T08:00:03Z"),
    }


def a_node(name: str, *, taint: str = "", **more: Any) -> Json:
    """A node; ``more``: ``labels``, ``allocatable``."""
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **more.get("allocatable", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": more.get("labels", {})},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def diagnose_case(*objects: Json, name: str = "job-0") -> Diagnosis:
    """Diagnose a pod of namespace ``lab``, with the attempts that its events describe."""
    reader = KubeEvents(reporters=TrustedReporters(SCHEDULERS))
    events = []
    for kind in ("Pod", "Event"):
        for item in objects:
            if item["kind"] == kind:
                events += reader.read_object("pod" if kind == "Pod" else "event", item, 0.0)
    attempts = [attempt for attempt in list_attempts([*events, *reader.close()]) if attempt.pod.name == name]
    latest = max(attempts, key=lambda attempt: attempt.started_at, default=None)
    return diagnose(CaseFacts(collect_objects(objects), NOW).build("lab", name, latest))


def get_code(diagnosis: Diagnosis) -> str:
    """Get the code of the main obstacle."""
    assert diagnosis.obstacle, diagnosis.sentence.en
    return diagnosis.obstacle.code


def to_english(word: Word) -> str | int:
    """Return a word of an obstacle as its English sentence has it."""
    return word.en if isinstance(word, InBothLanguages) else word
