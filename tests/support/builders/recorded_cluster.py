"""Facts of a diagnosis from the objects that a real API server (Kubernetes 1.34) gave: `cases/control_plane.json`.

It was recorded in tests/integration/kubernetes/test_diagnosis.py, where the real kube-scheduler had refused the pods;
three nodes, one tainted, one cordoned.
"""

import asyncio
import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api.answers.circumstances import read_circumstances, read_nodes
from engine.diagnosis.facts import DiagnosisFacts, Evidence, SchedulerState
from tests.support.fakes.objects import FakeObjects

RECORDED: dict[str, Any] = json.loads(Path("tests/unit/engine/diagnosis/cases/control_plane.json").read_text())
NAMESPACE = "test-diagnosis"
CREATED = datetime(2026, 11, 23, 7, 22, 28, tzinfo=UTC)
"""Time at which the pods were made."""
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
HAMI = SchedulerState(
    "hami-scheduler", Evidence("scheduler", "hami-scheduler@1"), "HAMi", CREATED - timedelta(minutes=20)
)


def build_objects(**pods: dict[str, Any]) -> FakeObjects:
    recorded = deepcopy(RECORDED)
    names = [name for name in recorded if name not in ("events", "quotas", "nodes")]
    items = {f"{PODS}/{name}": pods.get(name, recorded[name]) for name in names}
    lists = {EVENTS: "events", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas": "quotas", "/api/v1/nodes": "nodes"}
    return FakeObjects(items | {path: recorded[name] for path, name in lists.items()})


def build_facts(name: str, api: FakeObjects | None = None, seconds: float = 5, **more: Any) -> DiagnosisFacts:
    """Build the facts of a pod, so many ``seconds`` after it was made."""
    api, now = api or build_objects(), CREATED + timedelta(seconds=seconds)
    circumstances = asyncio.run(read_circumstances(api, NAMESPACE, name, now))
    nodes, _ = asyncio.run(read_nodes(api, now))
    events = [event for event in circumstances.events or () if f"/{name}." in event.record]
    return DiagnosisFacts(
        "default", NAMESPACE, name, now, pod=circumstances.pod, claims=circumstances.claims,
        quotas=circumstances.quotas, events=events,
        nodes=nodes, owner_problem=circumstances.owner_problem, unknown=circumstances.unknown, **more,
    )  # fmt: skip
