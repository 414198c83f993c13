"""Pods simulated on the objects of a case, and the changes after which a waiting pod of it would fit."""

from datetime import datetime
from pathlib import Path
from typing import Final

from engine.cases.judging import build_case_cluster, build_case_judge
from engine.fit.manifests import ManifestError
from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.verdict import PodRejectedError
from engine.simulation.workloads import read_workloads
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from schemas.answers.diagnosis import Diagnosis
from schemas.answers.suggestions import Suggestions
from schemas.json_types import Json

_PODS: Final = Path("the pods")
NODES_OPEN: Final = "NodesOpen"
"""Step of the diagnosis that asks whether a node would take the pod."""


def simulate_on_case(objects: CaseObjects, pods: bytes, namespace: str, count: int | None, now: datetime) -> Json:
    """Simulate the pods of a text; ``count``: copies of each, None for one. Raises ``ManifestError``."""
    cluster = objects.derive(build_case_cluster)
    try:
        return simulate_workloads(cluster, read_workloads(pods, _PODS, namespace), count, SimulationSetting(now))
    except PodRejectedError as error:
        raise ManifestError(_PODS, None, str(error)) from None


def suggest_changes(objects: CaseObjects, diagnosis: Diagnosis, now: datetime) -> Suggestions | None:
    """Suggest changes after which the pod fits, each proved by judging it again.

    None where nodes are not what the pod waits for (a gate, a queue, another member of its group), or if nothing is
    found.
    """
    pod = objects.find(kinds.POD, diagnosis.name, diagnosis.namespace)
    refused = any(step.step == NODES_OPEN and step.answer == "no" for step in diagnosis.steps)
    if pod is None or not refused:
        return None
    judge = build_case_judge(objects, now)
    return judge.suggest(pod, diagnosis.cluster) if judge else None
