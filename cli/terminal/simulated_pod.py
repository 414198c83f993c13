"""Simulation of a pod in a described cluster by the scheduler's own fit: its node, or why it waits and what would help.

The answer is that of the API's ``POST /api/v1/simulate``. Pure. It imports the fit, which takes its time.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from engine.diagnosis.tree import diagnose_simulated
from engine.fit import device_config, manifests
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.manifests import ManifestError
from engine.fit.simulate import build_columns, simulate, to_schedulerlog
from engine.suggestions.answer import ProvedSuggestions, build_suggestions
from engine.suggestions.ask import Ask
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.suggest import suggest
from engine.suggestions.trial import Trial
from engine.summaries.fold import summarize
from schemas.events import AttemptSummarized
from schemas.json_types import Json

SCHEDULER: Final = "hami-scheduler"
"""The name of the scheduler that the pod asks for, in attempts that were not made."""
_POLICY: Final = SchedulingPolicy()


def simulate_pod(cluster: bytes, cluster_name: str, pod: bytes, pod_name: str, now: datetime) -> Json:
    """Simulate a pod; all values are None for a pod that requests no device. The names are those of the files.

    Raises ``ManifestError``.
    """
    manifest = manifests.parse(cluster, Path(cluster_name))
    vendors = device_config.read_shipped()
    events = simulate(manifest, _parse_pod(pod, Path(pod_name)), SCHEDULER, _POLICY, now, vendors)
    if not events:
        return {"node": None, "schedulerlog": None, "diagnosis": None, "suggestions": None}
    attempt = summarize(events)
    changes = _suggest_changes(build_columns(manifest, vendors), attempt)
    diagnosis = diagnose_simulated(attempt, now, changes.excluded_by)
    return {
        "node": attempt.chosen,
        "schedulerlog": orjson.loads(to_schedulerlog(events, is_full=True)),
        "diagnosis": diagnosis.model_dump(mode="json"),
        "suggestions": build_suggestions(attempt, "", now, changes, {}, []).model_dump(mode="json"),
    }


def _suggest_changes(columns: ClusterColumns, attempt: AttemptSummarized) -> ProvedSuggestions:
    if attempt.chosen:
        return ProvedSuggestions([], [], fits=True)
    ask = Ask.from_attempt(attempt.pod, attempt.requests, attempt.constraints or {}, columns.vendors)
    trial = Trial(columns, tuple(attempt.nodes), _POLICY)
    return ProvedSuggestions(suggest(trial, ask), find_excluding_constraints(trial, ask), fits=False)


def _parse_pod(text: bytes, path: Path) -> Mapping[str, Any]:
    pods = manifests.parse(text, path).pods
    if len(pods) != 1:
        raise ManifestError(path, None, f"describes {len(pods)} pods, write exactly one object of kind Pod")
    return next(iter(pods.values()))
