"""The questions about the pod itself: is it there, does it wait, is it held back, can its node start it."""

from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, ObservedPod, OwnerProblem
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.wording import listed, named, of_bind, of_condition, quoted
from engine.hami.quantities import parse_whole

ENDED: Final = frozenset(("Succeeded", "Failed"))
_STARTED: Final = frozenset(("Running", *ENDED))
_GATED: Final = "SchedulingGated"
_FAILED: Final = "failed"
_QUOTA: Final = "exceeded quota: "
"""Kubernetes' admission of quotas writes it, with the quota's name behind it."""


def pod_steps(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    pod = facts.pod
    yield _exists(facts)
    yield _still_waits(facts)
    if pod and pod.node:
        yield _starts(facts, pod)
    yield _free_of_gates(facts)


def _exists(facts: DiagnosisFacts) -> TreeStep:
    pod, unknown = facts.pod, facts.unknown_of("pod", "owner")
    if pod is None and facts.attempt:
        return TreeStep("PodExists", "yes", [named(facts.attempt)], unknown)
    if pod is None:
        return TreeStep("PodExists", "not known", (), unknown)
    if not pod.is_gone:
        return TreeStep("PodExists", "yes", [pod.source])
    names: dict[str, Word] = {"namespace": facts.namespace, "name": facts.name}
    obstacle = _not_made(facts, facts.owner_problem, names) if facts.owner_problem else None
    found = obstacle or FoundObstacle("PodMissing", names, evidence=[pod.source])
    evidence = [pod.source, *((facts.owner_problem.source,) if facts.owner_problem else ())]
    return TreeStep("PodExists", "no", evidence, unknown, [found], is_end=True)


def _not_made(facts: DiagnosisFacts, owner: OwnerProblem, names: dict[str, Word]) -> FoundObstacle:
    words: dict[str, Word] = names | {"workload": owner.workload, "words": quoted(owner.problem.message)}
    _, is_quota, behind = owner.problem.message.partition(_QUOTA)
    if not is_quota:
        return FoundObstacle("OwnerRefused", words, evidence=[owner.source])
    quota = next((candidate for candidate in facts.quotas or () if behind.startswith(f"{candidate.name},")), None)
    # Of the quota's resources, the one of which the largest share is used.
    amounts = (
        [(parse_whole(quota.used.get(name, "0")) or 0, parse_whole(hard), name) for name, hard in quota.hard.items()]
        if quota
        else []
    )
    known = [(used / hard, used, hard, name) for used, hard, name in amounts if hard]
    if not quota or not known:
        return FoundObstacle("QuotaExceeded", words, evidence=[owner.source])
    _, used, hard, name = max(known)
    return FoundObstacle(
        "QuotaExceeded",
        words | {"resource": name, "used": used, "hard": hard},
        {f"{name}.used": used, f"{name}.hard": hard},
        evidence=[owner.source, quota.source],
        clauses=["amounts"],
    )


def _still_waits(facts: DiagnosisFacts) -> TreeStep:
    pod, attempt = facts.pod, facts.attempt
    unknown = facts.unknown_of("pod", "observations")
    if pod and (pod.phase in ENDED or pod.is_being_deleted):
        return TreeStep("StillWaits", "no", [pod.source], is_end=True)
    if pod and pod.node:
        return TreeStep("StillWaits", "no", [pod.source])
    bind = attempt.bind if attempt and attempt.bind and attempt.bind.bound else None
    # An observation of before the bind does not know of it.
    if attempt and bind and not (pod and pod.source.at and pod.source.at > bind.ended_at):
        return TreeStep("StillWaits", "no", of_bind(attempt), unknown, is_end=True)
    if pod:
        return TreeStep("StillWaits", "yes", [pod.source])
    return TreeStep("StillWaits", "yes" if attempt else "not known", [named(attempt)] if attempt else [], unknown)


def _starts(facts: DiagnosisFacts, pod: ObservedPod) -> TreeStep:
    words: dict[str, Word] = {"node": pod.node}
    findings = facts.findings
    if pod.phase in _STARTED:
        return TreeStep("Starts", "yes", [pod.source, *findings], facts.unknown_of("findings"), is_end=True)
    if pod.problems:
        latest = max(pod.problems, key=lambda problem: problem.at)
        text = f"{latest.reason}: {latest.message}"
        shown = Evidence("pod", pod.source.record, latest.at, latest.reported_by, words=text)
        words["words"] = quoted(text)
        obstacle = FoundObstacle("KubeletRefused", words, nodes=[pod.node], evidence=[shown])
        return TreeStep("Starts", "no", [shown, *findings], (), [obstacle], is_end=True)
    if pod.bind_phase == _FAILED:
        obstacle = FoundObstacle("AllocationFailed", words, nodes=[pod.node], evidence=[pod.source])
        return TreeStep("Starts", "no", [pod.source, *findings], (), [obstacle], is_end=True)
    return TreeStep("Starts", "not known", [pod.source, *findings], facts.unknown_of("events"), is_end=True)


def _free_of_gates(facts: DiagnosisFacts) -> TreeStep:
    pod = facts.pod
    condition = pod.condition("PodScheduled") if pod else None
    gates = pod.gates if pod else None
    if pod and (gates or (condition and condition.reason == _GATED)):
        evidence = [of_condition(pod, condition)] if condition else [pod.source]
        # An observation has the condition alone, which names no gate.
        names = listed(gates) if gates else _GATED
        words: dict[str, Word] = {"count": len(gates or "1"), "gates": names, "namespace": facts.namespace}
        return TreeStep(
            "FreeOfGates", "no", evidence, (), [FoundObstacle("SchedulingGated", words, evidence=evidence)], is_end=True
        )
    if pod and (gates is not None or condition):
        return TreeStep("FreeOfGates", "yes", [pod.source])
    # A scheduler looks at no pod that has a gate.
    if facts.attempt:
        return TreeStep("FreeOfGates", "yes", [named(facts.attempt)])
    return TreeStep("FreeOfGates", "not known", (), facts.unknown_of("pod"))
