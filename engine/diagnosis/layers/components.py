"""Parts of the cluster on which scheduling depends: pods of schedulers and of device plugins that do not run.

Only their objects tell: a scheduler that is down writes nothing, and of a device plugin that is down its resource is
missing from nodes. They are looked for only where what happened to the pod asks for them.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import find_obstacle_of_error, find_obstacle_of_reason
from engine.diagnosis.wording import get_scheduler, quote, to_attempt_evidence
from engine.hami.reason_codes import ReasonCode
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import (
    CONTAINER_STATUSES,
    STARTING,
    Fields,
    get_object,
    get_text,
    iterate_objects,
)

QUESTION: Final = "PartsRun"
SCHEDULER_DOWN: Final = "SchedulerDown"
PLUGIN_DOWN: Final = "DevicePluginDown"
PLUGIN_WITHOUT_NODE: Final = "DevicePluginWithoutNode"
_DAEMON_SET: Final = "DaemonSet.apps"
_SCHEDULER: Final = re.compile(r"scheduler")
_PLUGIN: Final = re.compile(r"device-?plugin|driver-daemonset|container-toolkit")
_EXTENDER: Final = "ExtenderUnreachable"
_INSUFFICIENT: Final = ("InsufficientResource", ReasonCode.NODE_UNREGISTERED)


class _Part(NamedTuple):
    """A pod that does not run."""

    name: str
    node: str
    why: str
    evidence: Evidence


def check_components(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check the pods of the pod's scheduler, and those of device plugins where nodes lack a device's resource."""
    if facts.objects is None or (facts.pod and facts.pod.node):
        return
    if not facts.attempt or find_obstacle_of_error(facts.attempt.error) == _EXTENDER:
        obstacle = _find_scheduler(facts)
    else:
        obstacle = _find_plugin(facts) if _has_too_few_devices(facts) else None
    if obstacle:
        yield TreeStep(QUESTION, "no", obstacle.evidence, (), [obstacle])


def _find_scheduler(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find the pod of the scheduler that names the pod, or of the one whose extender does not answer."""
    name = get_scheduler(facts)
    for part in _iterate_down(facts, _SCHEDULER):
        is_named = part.name.rpartition("/")[2].startswith(name) if name else True
        if is_named or (facts.attempt and facts.attempt.error):
            words: dict[str, Word] = {"part": part.name, "why": part.why}
            if facts.attempt is None:
                return FoundObstacle(SCHEDULER_DOWN, words, evidence=[part.evidence])
            words |= {"words": quote(facts.attempt.error)}
            evidence = [part.evidence, to_attempt_evidence(facts.attempt)]
            return FoundObstacle(SCHEDULER_DOWN, words, evidence=evidence, clauses=["extender"])
    return None


def _has_too_few_devices(facts: DiagnosisFacts) -> bool:
    """Tell whether nodes were refused because they lack a resource of devices, or have registered none."""
    refused = facts.attempt.refused_nodes if facts.attempt else {}
    reasons = (find_obstacle_of_reason(reason) for reason in refused)
    return any(code in _INSUFFICIENT and (code != _INSUFFICIENT[0] or "/" in details) for code, details in reasons)


def _find_plugin(facts: DiagnosisFacts) -> FoundObstacle | None:
    part = next(_iterate_down(facts, _PLUGIN), None)
    if part:
        words: dict[str, Word] = {"part": part.name, "node": part.node, "why": part.why}
        return FoundObstacle(PLUGIN_DOWN, words, evidence=[part.evidence], clauses=["node"] if part.node else [])
    for entry in facts.objects.select(_DAEMON_SET) if facts.objects else ():
        name = _format_name(entry)
        if _PLUGIN.search(name) and get_object(entry, "status").get("desiredNumberScheduled") == 0:
            selector = get_object(entry, "spec", "template", "spec", "nodeSelector")
            labels = [f"{key}={value}" for key, value in selector.items()]
            words = {"part": name, "labels": " ".join(labels)}
            evidence = [Evidence("owner", f"DaemonSet {name}", facts.now)]
            return FoundObstacle(PLUGIN_WITHOUT_NODE, words, evidence=evidence, clauses=["labels"] if labels else [])
    return None


def _iterate_down(facts: DiagnosisFacts, pattern: re.Pattern[str]) -> Iterator[_Part]:
    for pod in facts.objects.select(kinds.POD) if facts.objects else ():
        name = get_text(pod, "metadata", "name")
        if name == facts.name or not pattern.search(name):
            continue
        if why := _describe_stop(pod):
            node = get_text(pod, "spec", "nodeName")
            evidence = Evidence("pod", _format_name(pod), facts.now, words=why)
            yield _Part(_format_name(pod), node if node != "?" else "", why, evidence)


def _describe_stop(pod: Fields) -> str:
    """Describe the first container that does not run; empty for a pod that runs, or that starts."""
    for kind in CONTAINER_STATUSES:
        for container in iterate_objects(pod, "status", kind):
            reason = get_text(container, "state", "waiting", "reason")
            if reason not in STARTING:
                words = get_text(container, "state", "waiting", "message")
                return quote(f"{reason}: {words}") if words else reason
    return get_text(pod, "status", "reason") if get_text(pod, "status", "phase") == "Failed" else ""


def _format_name(entry: Fields) -> str:
    return f"{get_text(entry, 'metadata', 'namespace') or 'default'}/{get_text(entry, 'metadata', 'name')}"
