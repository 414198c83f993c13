"""Where a pod would go in a described cluster, by the scheduler's own fit; why it would wait, and what would help.

Pure. It imports the fit, which takes its time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from client.transport import Json
from diagnosis.facts import DiagnosisFacts
from diagnosis.suggestions.ask import Ask
from diagnosis.suggestions.suggest import suggest
from diagnosis.suggestions.texts import sentence
from diagnosis.suggestions.trial import Trial
from diagnosis.tree import diagnose
from fit import manifests
from fit.devices.cluster_state import ClusterColumns
from fit.judge.decision import SchedulingPolicy
from fit.manifests import ManifestError
from fit.simulate import columns_of, schedulerlog, simulate
from schemas.events import AttemptSummarized
from summaries.fold import summarize

SCHEDULER: Final = "hami-scheduler"
"""The name of the scheduler that the pod asks for, in attempts that were not made."""


@dataclass(frozen=True, slots=True)
class SimulatedPod:
    chosen: str
    """The node; empty where none fits."""
    log: Json
    """The API's answer to the attempt, with its detail."""
    diagnosis: Json
    suggestions: list[Json]

    def document(self) -> Json:
        return {"node": self.chosen, **self.log, "diagnosis": self.diagnosis, "suggestions": self.suggestions}


def simulated(cluster: bytes, cluster_name: str, pod: bytes, pod_name: str, now: datetime) -> SimulatedPod | None:
    """None for a pod that asks for no device. The names are those of the files. Raises ``ManifestError``."""
    manifest = manifests.parse(cluster, Path(cluster_name))
    policy = SchedulingPolicy()
    events = simulate(manifest, _only_pod(pod, Path(pod_name)), SCHEDULER, policy, now)
    if not events:
        return None
    attempt = summarize(events)
    facts = DiagnosisFacts(attempt.cluster, attempt.pod.namespace, attempt.pod.name, now, attempt, is_latest=False)
    return SimulatedPod(
        attempt.chosen or "",
        json.loads(schedulerlog(events, is_full=True)),
        diagnose(facts).model_dump(mode="json"),
        [] if attempt.chosen else _suggestions(columns_of(manifest), attempt, policy),
    )


def _suggestions(columns: ClusterColumns, attempt: AttemptSummarized, policy: SchedulingPolicy) -> list[Json]:
    ask = Ask.of_attempt(attempt.pod, attempt.requests, attempt.constraints or {}, columns.vendors)
    found = suggest(Trial(columns, tuple(attempt.nodes), policy), ask)
    return [
        {
            "sentence": sentence(each, each.edits).model_dump(),
            "who_acts": each.actor,
            "node": each.allocation.node,
            "cost": round(each.cost, 3),
        }
        for each in found
    ]


def _only_pod(text: bytes, path: Path) -> Mapping[str, Any]:
    pods = manifests.parse(text, path).pods
    if len(pods) != 1:
        raise ManifestError(path, None, f"describes {len(pods)} pods, write exactly one object of kind Pod")
    return next(iter(pods.values()))
