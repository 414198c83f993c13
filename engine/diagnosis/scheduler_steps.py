"""Questions about the pod's scheduler: whether it is the right one, runs, and looks at the pod."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster, SchedulerState
from engine.diagnosis.layers.statements import has_spoken
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.wording import (
    count_devices,
    describe_age,
    get_requests,
    get_scheduler,
    quote,
    shorten_list,
    to_attempt_evidence,
    to_condition_evidence,
)
from schemas.events import Condition, Request

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""Kubernetes' own scheduler: it exists without an observation."""
SOON: Final = timedelta(seconds=60)
"""Time within which a scheduler under load comes to a new pod."""
_USUAL_NAMES: Final = (
    DEFAULT_SCHEDULER, "volcano", "kai-scheduler", "hami-scheduler", "koord-scheduler", "yunikorn",
    "scheduler-plugins-scheduler", "topo-aware-scheduler",
)  # fmt: skip
"""Names under which schedulers are installed."""
_NEAR: Final = 0.85
_NEAR_STEM: Final = 0.7
"""Likeness of a misspelled name, and of what stands before its usual end."""
_SUFFIX: Final = "-scheduler"
_DELETED: Final = "skip schedule deleting pod: "
"""Words of kube-scheduler and Volcano about a pod that is on its way out."""
_UNNAMED: Final = "the scheduler"
_UNSCHEDULABLE: Final = frozenset(("Unschedulable", "SchedulerError"))


def find_refusal_condition(pod: PodOnCluster | None) -> Condition | None:
    """Find the condition that a scheduler wrote on the pod when it found no node."""
    condition = pod.find_condition("PodScheduled") if pod else None
    return condition if condition and condition.status == "False" and condition.reason in _UNSCHEDULABLE else None


def answer_scheduler_questions(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    requests, name = get_requests(facts), get_scheduler(facts)
    condition = find_refusal_condition(facts.pod)
    yield _check_judged(facts, condition)
    yield _check_requests(facts, requests)
    if not facts.attempt and not condition:
        yield _check_scheduler(facts, name)
    # HAMi may extend Kubernetes' own scheduler under its own name: then its devices were judged.
    is_others = facts.attempt is not None and (
        facts.attempt.judged_devices > 0 or facts.attempt.scheduler != DEFAULT_SCHEDULER
    )
    if requests and count_devices(requests) and name == DEFAULT_SCHEDULER and not is_others:
        yield _check_webhook(facts, requests, name, has_decided=bool(facts.attempt or condition))
    if not facts.attempt and not condition:
        yield _check_running(facts, name)


def _check_judged(facts: DiagnosisFacts, condition: Condition | None) -> TreeStep:
    if facts.attempt:
        return TreeStep("Judged", "yes", [to_attempt_evidence(facts.attempt)], facts.select_unknown("records"))
    events = list(facts.events or ())
    if facts.pod and condition:
        return TreeStep(
            "Judged", "yes", [to_condition_evidence(facts.pod, condition), *events], facts.select_unknown("attempt")
        )
    # Without the index, an earlier attempt may exist.
    is_sure = bool(facts.pod) and not facts.select_unknown("attempt")
    return TreeStep("Judged", "no" if is_sure else "not known", events, facts.select_unknown("attempt", "events"))


def _check_requests(facts: DiagnosisFacts, requests: Sequence[Request] | None) -> TreeStep:
    if requests is None:
        return TreeStep("AsksForDevices", "not known", (), facts.select_unknown("pod"))
    asking = [request for request in requests if request.count]
    numbers = {f"{request.container}.devices": request.count for request in asking}
    numbers |= {f"{request.container}.memory_mib": request.memory_mib for request in asking if request.memory_mib}
    numbers |= {
        f"{request.container}.memory_percent": request.memory_percent for request in asking if request.memory_percent
    }
    numbers |= {
        f"{request.container}.cores_percent": request.cores_percent for request in asking if request.cores_percent
    }
    source = to_attempt_evidence(facts.attempt) if facts.attempt else facts.pod.source if facts.pod else None
    evidence = [Evidence(source.kind, source.record, source.time, source.reported_by, numbers)] if source else []
    return TreeStep("AsksForDevices", "yes" if asking else "no", evidence)


def _check_scheduler(facts: DiagnosisFacts, name: str) -> TreeStep:
    if name and facts.schedulers is None and (obstacle := _find_misspelled(facts, name)):
        return TreeStep("SchedulerKnown", "no", obstacle.evidence, (), [obstacle], is_end=True)
    if not name or facts.schedulers is None:
        unknown = facts.select_unknown("schedulers") if name else facts.select_unknown("pod")
        return TreeStep("SchedulerKnown", "not known", (), unknown)
    namesakes = [scheduler for scheduler in facts.schedulers if scheduler.name == name]
    if has_spoken(facts, name):
        return TreeStep("SchedulerKnown", "yes", list(facts.events or ()))
    if namesakes or name == DEFAULT_SCHEDULER:
        return TreeStep("SchedulerKnown", "yes", [scheduler.source for scheduler in namesakes])
    evidence = [scheduler.source for scheduler in facts.schedulers]
    # If no source reports any scheduler, the absence of this one means nothing.
    if not evidence:
        return TreeStep("SchedulerKnown", "not known", (), facts.select_unknown("schedulers"))
    names = [*sorted({scheduler.name for scheduler in facts.schedulers} | {DEFAULT_SCHEDULER})]
    obstacle = FoundObstacle(
        "SchedulerUnknown", {"scheduler": name, "known": shorten_list(names)}, evidence=evidence, clauses=["known"]
    )
    return TreeStep("SchedulerKnown", "no", evidence, (), [obstacle], is_end=True)


def _find_misspelled(facts: DiagnosisFacts, name: str) -> FoundObstacle | None:
    """Find the scheduler whose usual name is nearly the one that an untried pod names."""
    pod = facts.pod
    if (
        pod is None
        or pod.find_condition("PodScheduled")
        or facts.attempt
        or has_spoken(facts, name)
        or name in _USUAL_NAMES
    ):
        return None
    near = [usual for usual in get_close_matches(name, _USUAL_NAMES, 1, _NEAR) if _is_near(name, usual)]
    if not near or not pod.created_at or facts.now - pod.created_at < SOON:
        return None
    return FoundObstacle(
        "SchedulerUnknown", {"scheduler": name, "near": near[0]}, evidence=[pod.source], clauses=["near"]
    )


def _is_near(name: str, usual: str) -> bool:
    """Tell whether two names differ by a slip: what most schedulers' names end with does not make them alike."""
    if abs(len(usual) - len(name)) > 1:
        return False
    if not (name.endswith(_SUFFIX) and usual.endswith(_SUFFIX)):
        return True
    return bool(get_close_matches(name.removesuffix(_SUFFIX), [usual.removesuffix(_SUFFIX)], 1, _NEAR_STEM))


def _check_webhook(facts: DiagnosisFacts, requests: Sequence[Request], name: str, *, has_decided: bool) -> TreeStep:
    """Check whether HAMi's webhook was called for a pod that requests devices and names Kubernetes' own scheduler."""
    others = _list_device_schedulers(facts.schedulers or (), name)
    if not others:
        return TreeStep("WebhookCalled", "not known", (), facts.select_unknown("schedulers"))
    # Kubernetes' own scheduler can place complete devices of plugins other than HAMi's, but no shares of devices.
    if not any(_is_share(request) for request in requests) and has_decided:
        return TreeStep("WebhookCalled", "not known", [scheduler.source for scheduler in others])
    evidence = [scheduler.source for scheduler in others] + ([facts.pod.source] if facts.pod else [])
    words: dict[str, Word] = {"devices": count_devices(requests), "scheduler": name, "known": others[0].name}
    obstacle = FoundObstacle("WebhookNotCalled", words, {"devices": count_devices(requests)}, evidence=evidence)
    return TreeStep("WebhookCalled", "no", evidence, (), [obstacle], is_end=True)


def _list_device_schedulers(schedulers: Sequence[SchedulerState], name: str) -> list[SchedulerState]:
    """List the observed schedulers of devices other than ``name``; none if ``name`` is one itself."""
    placing = [scheduler for scheduler in schedulers if scheduler.implementation]
    return [] if any(scheduler.name == name for scheduler in placing) else placing


def _is_share(request: Request) -> bool:
    return bool(request.memory_mib or request.cores_percent or (request.memory_percent or 100) < 100)


def _check_running(facts: DiagnosisFacts, name: str) -> TreeStep:
    pod = facts.pod
    if event := next((event for event in facts.events or () if event.reported_by == name), None):
        code = (
            "PodBeingDeleted"
            if event.words.removeprefix("FailedScheduling: ").startswith(_DELETED)
            else "SchedulerSays"
        )
        obstacle = FoundObstacle(code, {"scheduler": name or _UNNAMED, "words": quote(event.words)}, evidence=[event])
        return TreeStep("SchedulerRuns", "yes", [event], (), [obstacle])
    namesakes = [scheduler for scheduler in facts.schedulers or () if scheduler.name == name]
    evidence = [scheduler.source for scheduler in namesakes]
    if not pod or not pod.created_at or facts.select_unknown("attempt"):
        return TreeStep("SchedulerRuns", "not known", evidence, facts.select_unknown("pod", "attempt", "schedulers"))
    waited, last = (
        facts.now - pod.created_at,
        max((scheduler.last_decided_at for scheduler in namesakes if scheduler.last_decided_at), default=None),
    )
    words: dict[str, Word] = {"scheduler": name, "waited": describe_age(pod.created_at, facts)}
    numbers = {"waited_seconds": int(waited.total_seconds())}
    if waited < SOON:
        obstacle = FoundObstacle("NotYetSeen", words, numbers, evidence=[pod.source])
        return TreeStep("SchedulerRuns", "not known", evidence, facts.select_unknown("schedulers"), [obstacle])
    if last:
        words["ago"] = describe_age(last, facts)
        numbers["decided_seconds_ago"] = int((facts.now - last).total_seconds())
    obstacle = FoundObstacle(
        "SchedulerSilent", words, numbers, evidence=[pod.source, *evidence], clauses=["decided"] if last else []
    )
    return TreeStep("SchedulerRuns", "no", [pod.source, *evidence], facts.select_unknown("schedulers"), [obstacle])
