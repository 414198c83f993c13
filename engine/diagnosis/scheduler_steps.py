"""The questions about the pod's scheduler: is it the right one, does it run, does it look at the pod."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, ObservedPod, SchedulerState
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.wording import devices_asked, listed, of_attempt, of_condition, requests_of, scheduler_of, since
from schemas.events import Condition, Request

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""Kubernetes' own: it is there without an observation."""
SOON: Final = timedelta(seconds=60)
"""A scheduler under load comes to a new pod within this time."""
_UNSCHEDULABLE: Final = frozenset(("Unschedulable", "SchedulerError"))


def refused_condition(pod: ObservedPod | None) -> Condition | None:
    """The condition that a scheduler wrote on the pod when it found no node."""
    condition = pod.condition("PodScheduled") if pod else None
    return condition if condition and condition.status == "False" and condition.reason in _UNSCHEDULABLE else None


def scheduler_steps(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    requests, name = requests_of(facts), scheduler_of(facts)
    condition = refused_condition(facts.pod)
    yield _judged(facts, condition)
    yield _asks_for_devices(facts, requests)
    if not facts.attempt and not condition:
        yield _is_known(facts, name)
    # HAMi may extend Kubernetes' own scheduler under its own name: then its devices were judged.
    is_others = facts.attempt is not None and (
        facts.attempt.judged_devices > 0 or facts.attempt.scheduler != DEFAULT_SCHEDULER
    )
    if requests and devices_asked(requests) and name == DEFAULT_SCHEDULER and not is_others:
        yield _webhook_called(facts, requests, name, has_decided=bool(facts.attempt or condition))
    if not facts.attempt and not condition:
        yield _runs(facts, name)


def _judged(facts: DiagnosisFacts, condition: Condition | None) -> TreeStep:
    if facts.attempt:
        return TreeStep("Judged", "yes", [of_attempt(facts.attempt)], facts.unknown_of("records"))
    events = list(facts.events or ())
    if facts.pod and condition:
        return TreeStep("Judged", "yes", [of_condition(facts.pod, condition), *events], facts.unknown_of("attempt"))
    # Without the index, an attempt of before may exist.
    is_sure = bool(facts.pod) and not facts.unknown_of("attempt")
    return TreeStep("Judged", "no" if is_sure else "not known", events, facts.unknown_of("attempt", "events"))


def _asks_for_devices(facts: DiagnosisFacts, requests: Sequence[Request] | None) -> TreeStep:
    if requests is None:
        return TreeStep("AsksForDevices", "not known", (), facts.unknown_of("pod"))
    asking = [request for request in requests if request.count]
    numbers = {f"{request.container}.devices": request.count for request in asking}
    numbers |= {f"{request.container}.memory_mib": request.memory_mib for request in asking if request.memory_mib}
    numbers |= {
        f"{request.container}.memory_percent": request.memory_percent for request in asking if request.memory_percent
    }
    numbers |= {
        f"{request.container}.cores_percent": request.cores_percent for request in asking if request.cores_percent
    }
    source = of_attempt(facts.attempt) if facts.attempt else facts.pod.source if facts.pod else None
    shown = [Evidence(source.kind, source.record, source.at, source.reported_by, numbers)] if source else []
    return TreeStep("AsksForDevices", "yes" if asking else "no", shown)


def _is_known(facts: DiagnosisFacts, name: str) -> TreeStep:
    if not name or facts.schedulers is None:
        unknown = facts.unknown_of("schedulers") if name else facts.unknown_of("pod")
        return TreeStep("SchedulerKnown", "not known", (), unknown)
    known = [scheduler for scheduler in facts.schedulers if scheduler.name == name]
    if known or name == DEFAULT_SCHEDULER:
        return TreeStep("SchedulerKnown", "yes", [scheduler.source for scheduler in known])
    evidence = [scheduler.source for scheduler in facts.schedulers]
    # Where no source reports any scheduler, that this one is missing means nothing.
    if not evidence:
        return TreeStep("SchedulerKnown", "not known", (), facts.unknown_of("schedulers"))
    names = [*sorted({scheduler.name for scheduler in facts.schedulers} | {DEFAULT_SCHEDULER})]
    found = FoundObstacle(
        "SchedulerUnknown", {"scheduler": name, "known": listed(names)}, evidence=evidence, clauses=["known"]
    )
    return TreeStep("SchedulerKnown", "no", evidence, (), [found], is_end=True)


def _webhook_called(facts: DiagnosisFacts, requests: Sequence[Request], name: str, *, has_decided: bool) -> TreeStep:
    """The step for a pod that asks for devices and names Kubernetes' own scheduler."""
    others = _device_schedulers(facts.schedulers or (), name)
    if not others:
        return TreeStep("WebhookCalled", "not known", (), facts.unknown_of("schedulers"))
    # Kubernetes' own scheduler can place whole devices of a plugin that is not HAMi's. Shares it can't.
    if not any(_is_share(request) for request in requests) and has_decided:
        return TreeStep("WebhookCalled", "not known", [scheduler.source for scheduler in others])
    evidence = [scheduler.source for scheduler in others] + ([facts.pod.source] if facts.pod else [])
    words: dict[str, Word] = {"devices": devices_asked(requests), "scheduler": name, "known": others[0].name}
    found = FoundObstacle("WebhookNotCalled", words, {"devices": devices_asked(requests)}, evidence=evidence)
    return TreeStep("WebhookCalled", "no", evidence, (), [found], is_end=True)


def _device_schedulers(schedulers: Sequence[SchedulerState], name: str) -> list[SchedulerState]:
    """Those that were observed as schedulers of devices, other than ``name``; none where it is one itself."""
    placing = [scheduler for scheduler in schedulers if scheduler.implementation]
    return [] if any(scheduler.name == name for scheduler in placing) else placing


def _is_share(request: Request) -> bool:
    return bool(request.memory_mib or request.cores_percent or (request.memory_percent or 100) < 100)


def _runs(facts: DiagnosisFacts, name: str) -> TreeStep:
    pod = facts.pod
    known = [scheduler for scheduler in facts.schedulers or () if scheduler.name == name]
    evidence = [scheduler.source for scheduler in known]
    if not pod or not pod.created_at or facts.unknown_of("attempt"):
        return TreeStep("SchedulerRuns", "not known", evidence, facts.unknown_of("pod", "attempt", "schedulers"))
    waited, last = (
        facts.now - pod.created_at,
        max((scheduler.last_decided_at for scheduler in known if scheduler.last_decided_at), default=None),
    )
    words: dict[str, Word] = {"scheduler": name, "waited": since(pod.created_at, facts)}
    numbers = {"waited_seconds": int(waited.total_seconds())}
    if waited < SOON:
        obstacle = FoundObstacle("NotYetSeen", words, numbers, evidence=[pod.source])
        return TreeStep("SchedulerRuns", "not known", evidence, facts.unknown_of("schedulers"), [obstacle])
    if last:
        words["ago"] = since(last, facts)
        numbers["decided_seconds_ago"] = int((facts.now - last).total_seconds())
    obstacle = FoundObstacle(
        "SchedulerSilent", words, numbers, evidence=[pod.source, *evidence], clauses=["decided"] if last else []
    )
    return TreeStep("SchedulerRuns", "no", [pod.source, *evidence], facts.unknown_of("schedulers"), [obstacle])
