"""A reader of Kubernetes' events with a judge, and the nodes and pods that both are fed with."""

from datetime import UTC, datetime
from typing import Any

from engine.snapshot import kinds
from engine.summaries.text import write_refusal
from ingest.readers.kube import KubeEvents
from ingest.readers.kube.judged_objects import JudgedObjects
from ingest.readers.kube.refusal_judge import RefusalJudge
from schemas.events import AttemptSummarized, Event
from schemas.json_types import Json
from tests.support.builders import api_server_objects

READ_AT = datetime(2026, 11, 21, 3, 13, 33, tzinfo=UTC)
"""A second after the events of ``an_event``."""
KINDS = {"pod": kinds.POD, "node": kinds.NODE, "claim": kinds.RESOURCE_CLAIM}


class WatchedCluster:
    """A reader with a judge, and the objects that both are fed with."""

    def __init__(self, read_at: datetime = READ_AT) -> None:
        self.objects = JudgedObjects()
        self.problem = ""
        self.written: list[Json] = []
        """Objects that were put."""
        self.objects.find_problem = lambda: self.problem
        self.reader = KubeEvents(judge=RefusalJudge(self.objects, lambda: read_at))

    def put(self, *objects: Json) -> None:
        self.written += objects
        for value in objects:
            version = value.get("apiVersion", "v1")
            self.objects.put(kinds.identify(version, value["kind"]), version, value)

    def read(self, *reports: tuple[Any, Json]) -> list[Event]:
        events = []
        for kind, value in reports:
            if kind in KINDS:
                self.objects.put(KINDS[kind], "v1", value)
            events += self.reader.read_object(kind, value, 0.0)
        return [*events, *self.reader.settle(60.0)]


def a_pod(name: str = "gpu8", gpus: int = 8, **more: Any) -> Json:
    """A pod as the API server stores it: requests of extended resources equal their limits."""
    pod = api_server_objects.a_pod(name, **more)
    amounts = {"nvidia.com/gpu": str(gpus)}
    pod["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": amounts}
    return pod


def a_node(name: str, gpus: int = 8, *, tainted: bool = False) -> Json:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    taints = [{"key": "gpu", "value": "only", "effect": "NoSchedule"}] if tainted else []
    status = {"allocatable": amounts, "capacity": amounts}
    return {"kind": "Node", "metadata": {"name": name}, "spec": {"taints": taints}, "status": status}


def list_reasons(attempt: AttemptSummarized) -> dict[str, str]:
    return {
        node: write_refusal(attempt.refusals[code])
        for node, code in zip(attempt.nodes, attempt.refusal.tolist(), strict=True)
    }
