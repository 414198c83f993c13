"""Words of autoscalers: a node is coming, none can come, or it was tried and failed.

The cluster autoscaler writes TriggeredScaleUp, NotTriggerScaleUp and FailedScaleUp on the pod; it counts its node
groups by reason, as kube-scheduler counts nodes. Karpenter writes Nominated, and FailedScheduling, which is no attempt
of a scheduler. A word of an autoscaler stands next to the obstacle; only a node that is coming makes waiting right.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.scale_ups import find_scale_up
from engine.diagnosis.layers.statements import Statement, iterate_events
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, to_answer
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import describe_age, quote, shorten_list
from schemas.answers.diagnosis import InBothLanguages

QUESTION: Final = "NodeIsComing"
KARPENTER: Final = "karpenter"
_SOON: Final = timedelta(minutes=15)
"""Time within which a node of a cloud comes up."""
_ADDED: Final = re.compile(r"\{(?P<group>\S+) (?P<now>\d+)->(?P<then>\d+)(?: \(max: (?P<maximum>\d+)\))?\}")
_NOT_ADDED: Final = re.compile(r"pod didn't trigger scale-up(?: \([^)]*\))?: ?(?P<items>.*)", re.DOTALL)
_ITEM: Final = re.compile(r"(?P<count>\d+) (?P<reason>\S.*)", re.DOTALL)
_NOMINATED: Final = re.compile(r"Pod should schedule on: (?P<where>.*)")
_CLAIM: Final = re.compile(r"\bnodeclaim/(?P<claim>[\w.-]+)")
_GROUP_REFUSED: Final = re.compile(
    r"(?:can't be scheduled on (?P<group>[^\s,]+?), predicate "
    r"(?:checking error: |failed: \w+ predicate mismatch,(?: cannot put \S+ on \S+,)? reason: )|"
    r"Node group (?P<out>\S+) is not ready for scaleup - |"
    r"cannot put \S+ on template-node-for-(?P<template>\S+?)(?:-\d{6,})?, reason: )(?P<reason>[^;]*)"
)
"""Line of the autoscaler's log about a group of nodes."""
_PLACEABLE: Final = re.compile(
    r"marked as unschedulable can be scheduled on (?:node )?(?P<node>[^\s,]+?)(?: \(|[.,]? )"
)
"""Line of the autoscaler's log about a pod that its own simulation places on a node that exists."""
_BACKOFF: Final = "in backoff after failed scale-up"
_REASONS: Final = (
    (re.compile(r"max node group size reached"), "scale_maximum"),
    (re.compile(_BACKOFF), "scale_backoff"),
    (re.compile(r"max cluster (?P<details>.*) limit reached"), "scale_limit"),
    (re.compile(r"node\(s\) had (?:untolerated )?taints? ?(?P<details>\{[^}]*\})?"), "scale_taint"),
    (re.compile(r"node\(s\) had untolerated taint\(s\)"), "scale_taint"),
    (re.compile(r"node\(s\) didn't match (?:Pod's node affinity|node selector)"), "scale_selector"),
    (re.compile(r"node\(s\) (?:had volume node affinity conflict|didn't match PersistentVolume)"), "scale_volume"),
    (re.compile(r"Insufficient (?P<details>\S+)"), "scale_amount"),
)  # fmt: skip


_POOL: Final = re.compile(r"(?:incompatible with (?:nodepool|provisioner) |\(NodePool=)\"?(?P<pool>[^\s\",)]+)")
_POOL_REASONS: Final = (
    (re.compile(r"exceed(?:s|ed)? (?:the )?limits for nodepool|limits? exceeded"), "pool_limit"),
    (
        re.compile(
            r"no instance type (?:has the required offering|which met [^;]*?enough resources, had a required offering)"
        ),
        "pool_offering",
    ),
    (re.compile(r"no instance type (?:has enough resources|which met [^;]*? had the required)"), "pool_amount"),
    (re.compile(r"no instance type (?:satisfied|met|which)"), "pool_requirements"),
    (re.compile(r"did not tolerate (?:taint )?\(?(?:taint=)?(?P<details>[^\s,;)]+)"), "pool_taint"),
    (re.compile(r"incompatible requirements, (?:key|label) \"?(?P<details>[^\s\",]+)\"?(?P<typo>[^;]*)"), "pool_label"),
)
"""Reasons for which Karpenter makes no node of a NodePool, or of a provisioner before v0.32; the nearest first."""
_OVERHEAD: Final = re.compile(r"daemonset overhead=\{(?P<amounts>[^}]*)\}")
_OVERHEAD_DEVICE: Final = re.compile(r"\"(?P<resource>[^\"/]+/[^\"]+)\":\"(?P<amount>\d+)\"")
"""Devices that Karpenter counts for the DaemonSets of a new node, besides what the pod asks for."""
_NEEDED: Final = re.compile(r"\bresources[ =]\{(?P<amounts>[^}]*)\}")
_TYPES: Final = re.compile(r"\bnode\.kubernetes\.io/instance-type In \[(?P<types>[^\]]+)\]")
"""Kinds of machines that the pod and the NodePool allow together."""
_MANY_CLAIMS: Final = 3
"""Nodes begun for one pod that mean more than a change of plan."""
_RANKS: Final = {name: rank for rank, (_, name) in enumerate(_POOL_REASONS)}


def check_autoscaler(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check what the latest word of an autoscaler says."""
    is_bound = bool(facts.attempt and facts.attempt.bind and facts.attempt.bind.bound)
    if is_bound or (facts.pod and facts.pod.node):
        return
    reasons = ("TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp", "Nominated", "FailedScheduling")
    for event in iterate_events(facts, *reasons):
        is_karpenter = event.evidence.reported_by == KARPENTER
        if event.reason in ("Nominated", "FailedScheduling") and not is_karpenter:
            continue
        obstacle = _explain(facts, event, is_karpenter=is_karpenter)
        yield TreeStep(QUESTION, to_answer(obstacle.code == "AutoscalerAdds"), [event.evidence], (), [obstacle])
        return


def _explain(facts: DiagnosisFacts, event: Statement, *, is_karpenter: bool) -> FoundObstacle:
    name = "Karpenter" if is_karpenter else InBothLanguages(en="The cluster autoscaler", zh="cluster autoscaler")
    words: dict[str, Word] = {"autoscaler": name, "words": quote(event.text)}
    if event.reason == "FailedScaleUp":
        return FoundObstacle("AutoscalerFailed", words, evidence=[event.evidence])
    if event.reason in ("TriggeredScaleUp", "Nominated"):
        return _explain_added(facts, event, words)
    if fitting := _PLACEABLE.search(event.text):
        return FoundObstacle("AutoscalerSeesRoom", {"node": fitting["node"]}, evidence=[event.evidence])
    pools = _describe_pools(event.text) if is_karpenter else None
    reasons = pools or _describe_reasons(event.text)
    refused = _list_refused_groups(facts)
    steps = _list_steps(event.text, _POOL_REASONS if is_karpenter else _REASONS)
    words |= {"reasons": reasons or "", "refused": shorten_list(refused), "steps": steps}
    clauses = ["pools"] if pools else ["reasons"] if reasons else [] if refused else ["words"]
    clauses += ["refused"] if refused else []
    evidence = [event.evidence]
    # A group in backoff had an attempt that failed: its words name the cause.
    if _BACKOFF in event.text and (failure := next(iterate_events(facts, "FailedScaleUp"), None)):
        words["failure"] = quote(failure.text)
        clauses.append("failed")
        evidence.append(failure.evidence)
    return FoundObstacle("AutoscalerCannot", words, evidence=evidence, clauses=clauses)


def _list_refused_groups(facts: DiagnosisFacts) -> list[str]:
    """List the groups that the autoscaler's log names, each with its latest reason."""
    events = sorted(
        iterate_events(facts, "NotTriggerScaleUp"),
        key=lambda event: (event.evidence.time is not None, event.evidence.time),
    )
    matches = [_GROUP_REFUSED.search(event.text) for event in events]
    reasons = {match["group"] or match["out"] or match["template"]: match["reason"] for match in matches if match}
    return [f"{group.rpartition('/')[2]} ({quote(reason)})" for group, reason in reasons.items()]


def _explain_added(facts: DiagnosisFacts, event: Statement, words: dict[str, Word]) -> FoundObstacle:
    groups = [_describe_group(match) for match in _ADDED.finditer(event.text)]
    nominated = _NOMINATED.search(event.text)
    if failure := _find_launch_failure(facts, event):
        evidence = [event.evidence, failure.evidence]
        details: dict[str, Word] = {"words": quote(failure.text), "claim": failure.reason}
        return FoundObstacle("NodeNotLaunched", words | details, evidence=evidence)
    names = _join(groups) if groups else nominated["where"] if nominated else quote(event.text)
    time = event.evidence.time
    words |= {"groups": names, "at": time.strftime("%H:%M:%S UTC") if time else ""}
    clauses = ["at"] if time else []
    if came := find_scale_up(facts, event):
        reasons = InBothLanguages(
            en="; ".join(reason.en.rstrip(".") for reason in came.reasons),
            zh="；".join(reason.zh.rstrip("。") for reason in came.reasons),
        )
        words |= {"before": came.before, "after": came.after, "reasons": reasons}
        evidence = [event.evidence, came.refusal.evidence]
        return FoundObstacle("AutoscalerAdded", words, evidence=evidence, clauses=["reasons"] if came.reasons else [])
    if nominated and (count := _count_claims(facts)) >= _MANY_CLAIMS:
        return FoundObstacle("NodesNotTaken", words | {"count": count}, evidence=[event.evidence])
    if time and facts.now - time > _SOON:
        words["ago"] = describe_age(time, facts)
        return FoundObstacle("AutoscalerLate", words, evidence=[event.evidence])
    return FoundObstacle("AutoscalerAdds", words, evidence=[event.evidence], clauses=clauses)


def _count_claims(facts: DiagnosisFacts) -> int:
    """Count the nodes on which Karpenter has meant to place the pod."""
    claims = (_CLAIM.search(event.text) for event in iterate_events(facts, "Nominated"))
    return len({claim["claim"] for claim in claims if claim})


def _find_launch_failure(facts: DiagnosisFacts, event: Statement) -> Statement | None:
    """Find why the node claim on which Karpenter means to place the pod has no machine; its reason is the claim."""
    claim = _CLAIM.search(event.text)
    if claim is None or facts.objects is None:
        return None
    for report in facts.objects.select_events("NodeClaim", claim["claim"], "default"):
        if report.is_warning:
            source = Evidence("event", f"NodeClaim {claim['claim']}", report.time, report.reporter, words=report.note)
            return Statement(report.note, source, claim["claim"])
    return None


def _describe_group(match: re.Match[str]) -> InBothLanguages:
    words: dict[str, Word] = {"group": match["group"], "now": int(match["now"][:9]), "then": int(match["then"][:9])}
    if match["maximum"]:
        return write_phrase("scale_group_of", **words, maximum=int(match["maximum"][:9]))
    return write_phrase("scale_group", **words)


def _describe_reasons(text: str) -> InBothLanguages | None:
    """Describe the node groups by the reason that excludes them; None for a text without counts."""
    match = _NOT_ADDED.search(text)
    items = re.split(r", (?=\d+ \S)", match["items"].strip()) if match else []
    counted = [item for part in items if (item := _ITEM.fullmatch(part))]
    phrases = [_describe_reason(int(item["count"][:9]), item["reason"]) for item in counted]
    return _join(phrases) if phrases else None


def _describe_pools(text: str) -> InBothLanguages | None:
    """Describe why no NodePool makes a node for the pod, the nearest one first.

    None for a text that names no NodePool with a known reason. A part without a NodePool is one more reason of the one
    before it.
    """
    pools: dict[str, list[tuple[int, InBothLanguages]]] = {}
    pool = ""
    for part in re.split(r"; (?=\S)", text):
        named = _POOL.search(part)
        pool = named["pool"] if named else pool
        matches = ((name, match) for pattern, name in _POOL_REASONS if (match := pattern.search(part)))
        name, match = next(matches, ("", None))
        if not pool or match is None:
            return None
        details = match.groupdict().get("details") or ""
        phrase = write_phrase(name, pool=pool, details=f" {details}" if details else "")
        pools.setdefault(pool, []).append((_RANKS[name], phrase))
        added = [*_describe_overhead(part), *(_describe_need(part) if name == "pool_amount" else ())]
        pools[pool] += ((_RANKS[name], phrase) for phrase in added)
    nearest = sorted(pools.values(), key=lambda reasons: (len(reasons), max(rank for rank, _ in reasons)))
    return _join([_combine_reasons([phrase for _, phrase in reasons]) for reasons in nearest]) if nearest else None


def _list_steps(text: str, reasons: Sequence[tuple[re.Pattern[str], str]]) -> InBothLanguages:
    """List a step for each kind of reason, in the order of the text; a general one for a text without any."""
    parts = re.split(r"; (?=\S)|, (?=\d)", text)
    matched = (next((name for pattern, name in reasons if pattern.search(part)), "") for part in parts)
    steps = [write_phrase(f"step_{name}") for name in dict.fromkeys(matched) if name] or [write_phrase("step_any")]
    return InBothLanguages(en=" ".join(step.en for step in steps), zh="".join(step.zh for step in steps))


def _describe_overhead(part: str) -> Iterator[InBothLanguages]:
    overhead = _OVERHEAD.search(part)
    for match in _OVERHEAD_DEVICE.finditer(overhead["amounts"] if overhead else ""):
        yield write_phrase("pool_overhead", resource=match["resource"], amount=int(match["amount"][:9]))


def _describe_need(part: str) -> Iterator[InBothLanguages]:
    """Describe the devices that no allowed kind of machine has, where the text names both."""
    needed, allowed = _NEEDED.search(part), _TYPES.search(part)
    devices = _OVERHEAD_DEVICE.findall(needed["amounts"]) if needed else []
    if devices and allowed:
        amounts = ", ".join(f"{amount} {resource}" for resource, amount in devices)
        yield write_phrase("pool_need", amounts=amounts, types=quote(", ".join(allowed["types"].split())))


def _combine_reasons(phrases: Sequence[InBothLanguages]) -> InBothLanguages:
    combined = phrases[0]
    for phrase in phrases[1:]:
        combined = write_phrase("pool_and", first=combined, second=phrase)
    return combined


def _describe_reason(count: int, reason: str) -> InBothLanguages:
    for pattern, phrase in _REASONS:
        if match := pattern.search(reason):
            details = match.groupdict().get("details") or ""
            return write_phrase(phrase, n=count, details=f" {details}" if details else "")
    return write_phrase("scale_other", n=count, details=f" {quote(reason)}")


def _join(phrases: list[InBothLanguages]) -> InBothLanguages:
    return InBothLanguages(en=", ".join(item.en for item in phrases), zh="，".join(item.zh for item in phrases))
