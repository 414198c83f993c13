"""The questions about an attempt: did the filter run, did a node pass, and why the others did not."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engine.diagnosis.cluster_steps import devices_registered
from engine.diagnosis.device_numbers import Numbers, models_of, numbers_of, rows_of, too_large
from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.open_nodes import Closed
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word, yes_or_no
from engine.diagnosis.refused_nodes import RefusedNodes, judged_nodes, refused_nodes
from engine.diagnosis.texts import obstacle_of_error, phrase
from engine.diagnosis.wording import NOTHING, enumerated, listed, of_attempt, quoted, share
from engine.hami.quantities import parse_whole
from engine.hami.reason_codes import ReasonCode
from schemas.events import AttemptSummarized

_SHOWN_BY_NODES: Final = frozenset(("NodeCordoned", "NodeNotReady", "TaintNotTolerated", "AffinityMismatch"))
_QUOTA_PREFIX: Final = "limits."
_NUMBERS: Final = (
    "memory_total_mib", "memory_used_mib", "cores_total_percent", "cores_used_percent", "slots_total", "slots_used",
)  # fmt: skip
"""The numbers of a device that a step shows."""
_ANNOTATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    ReasonCode.CARD_TYPE_MISMATCH: ("type", "mode"),
    ReasonCode.MODE_NOT_FIT: ("mode",),
    ReasonCode.CARD_UUID_MISMATCH: ("uuid",),
    ReasonCode.NUMA_NOT_FIT: ("numa",),
}
"""Parts of the names of annotations; each vendor has its own: `nvidia.com/use-gputype`, `hygon.com/use-dcutype`."""
_MAX_REASONS: Final = 3
_MAX_DEVICES: Final = 2
"""So many reasons, and devices of each, are shown as evidence."""


def attempt_steps(
    facts: DiagnosisFacts, attempt: AttemptSummarized, closed: Mapping[str, Closed]
) -> Iterator[TreeStep]:
    """``closed``: the nodes that kube-scheduler's own checks refuse now; they say more than its count of them."""
    shown = of_attempt(attempt)
    if attempt.error:
        yield TreeStep("FilterRan", "no", [shown], (), [_of_error(facts, attempt, shown)], is_end=True)
        return
    has_ended = attempt.ended_at is not None
    yield TreeStep("FilterRan", "yes" if has_ended else "not known", [shown], facts.unknown_of("records"))
    if attempt.chosen is not None or attempt.fit_nodes:
        yield TreeStep("NodePassed", "yes", [shown])
        return
    if attempt.nominated:
        node = attempt.nominated
        waits = FoundObstacle("WaitsForVictims", {"node": node}, nodes=[node], evidence=[shown])
        yield TreeStep("NodePassed", "no", [shown], (), [waits], is_end=True)
        return
    groups = refused_nodes(attempt)
    unregistered = [name for group in groups if group.code == ReasonCode.NODE_UNREGISTERED for name in group.names]
    of_nodes = _SHOWN_BY_NODES if closed else ()
    obstacles = [_obstacle(group, groups, facts, attempt) for group in groups if group.code not in of_nodes]
    if has_ended and not groups:
        words: dict[str, Word] = {"scheduler": attempt.scheduler}
        obstacles = [FoundObstacle(ReasonCode.FILTERING_FAILED, words, evidence=[shown])]
    evidence, unknown = [shown, *_of_devices(groups, facts, shown)], facts.unknown_of("devices", "records")
    yield TreeStep("NodePassed", yes_or_no(False if has_ended or groups else None), evidence, unknown, obstacles)
    if unregistered and facts.is_latest and (step := devices_registered(facts, frozenset(unregistered))):
        yield step


def _of_error(facts: DiagnosisFacts, attempt: AttemptSummarized, shown: Evidence) -> FoundObstacle:
    code = obstacle_of_error(attempt.error)
    words: dict[str, Word] = {"scheduler": attempt.scheduler, "namespace": facts.namespace}
    words["words"] = quoted(attempt.error)
    wanted = {"ClaimMissing": "", "ClaimUnbound": "Pending"}.get(code)
    claim = next((candidate for candidate in facts.claims or () if candidate.phase == wanted), None)
    if claim is None:
        return FoundObstacle(code, words, evidence=[shown])
    words |= {"claim": claim.name, "phase": claim.phase}
    return FoundObstacle(code, words, evidence=[shown, claim.source], clauses=["claim"])


def _obstacle(
    group: RefusedNodes, groups: Sequence[RefusedNodes], facts: DiagnosisFacts, attempt: AttemptSummarized
) -> FoundObstacle:
    # Of nodes that were refused as a whole, no device was looked at: one of them may be larger.
    is_each_known = all(other.has_devices or other.code == ReasonCode.NODE_UNREGISTERED for other in groups)
    is_memory = group.code == ReasonCode.CARD_INSUFFICIENT_MEMORY
    if is_memory and is_each_known and (beyond := too_large(group, facts)):
        return _made("MemoryBeyondDevice", group, beyond, {}, facts, attempt)
    of, such = judged_nodes(attempt), NOTHING
    if group.has_devices and group.has_accepted_devices:
        others = sum(other.count for other in groups if not other.has_accepted_devices)
        models = _accepted_models(groups, facts)
        of = max(of - others, group.count)
        if others:
            such = phrase("with_models", models=enumerated(models, "or")) if models else phrase("accepted")
    words: dict[str, Word] = {
        "refused": group.count, "of": of, "share": share(group.count, of, such), "namespace": facts.namespace,
        "scheduler": attempt.scheduler, "resource": listed(group.rest), "words": quoted(listed(group.rest).en),
    }  # fmt: skip
    return _made(group.code, group, numbers_of(group, facts), words, facts, attempt)


def _accepted_models(groups: Sequence[RefusedNodes], facts: DiagnosisFacts) -> list[str]:
    """The models of all nodes that have a device which the pod accepts; empty where they are not all known."""
    accepted = [group for group in groups if group.has_accepted_devices]
    if facts.unknown_of("devices") or not all(group.has_devices for group in accepted):
        return []
    return models_of([row for group in accepted for row in rows_of(group, facts)])


def _made(
    code: str,
    group: RefusedNodes,
    numbers: Numbers,
    words: Mapping[str, Word],
    facts: DiagnosisFacts,
    attempt: AttemptSummarized,
) -> FoundObstacle:
    words, clauses = {**words, **numbers.words}, list(numbers.clauses)
    evidence = [of_attempt(attempt)]
    if code == ReasonCode.RESOURCE_QUOTA_NOT_FIT and (amounts := _device_quota(facts)):
        source, more = amounts
        words |= more
        clauses.append("amounts")
        evidence.append(source)
    if code == "TaintNotTolerated" and group.rest:
        words["taints"] = listed(group.rest)
        clauses.append("taints")
    if wanted := _wanted(code, attempt):
        words["wanted"] = quoted(wanted)
        clauses.append("wanted")
    if code == ReasonCode.NODE_UNREGISTERED and group.rest:
        clauses.append("cause")
    return FoundObstacle(code, words, _plain(words, group), group.names, group.count, evidence, clauses)


def _wanted(code: str, attempt: AttemptSummarized) -> str:
    """The pod's annotations that the reason is about."""
    parts = _ANNOTATIONS.get(code, ())
    found = sorted((attempt.constraints or {}).items())
    return ", ".join(f"{name}={value}" for name, value in found if any(part in name for part in parts))


def _plain(words: Mapping[str, Word], group: RefusedNodes) -> dict[str, int]:
    """The numbers of the sentence, with units where the words have none. What was asked is named below."""
    units = {"refused": "nodes", "of": "of_nodes", "count": "devices_asked", "good": "suitable_devices"}
    units |= {"slots": "slots_total", **{what: f"{words.get('resource')}.{what}" for what in ("used", "hard")}}
    free = "free_memory_mib" if group.code == ReasonCode.CARD_INSUFFICIENT_MEMORY else "free_cores_percent"
    units |= {"free": free, "largest": "largest_memory_mib"}
    numbers = {units.get(name, name): word for name, word in words.items() if isinstance(word, int) and name != "asked"}
    request = group.request
    if request and request.count:
        asked = {"memory_mib": request.memory_mib, "memory_percent": request.memory_percent,
                 "cores_percent": request.cores_percent or None}  # fmt: skip
        numbers |= {f"asked_{name}": amount for name, amount in asked.items() if amount is not None}
        numbers["devices_asked"] = request.count
    return numbers


def _device_quota(facts: DiagnosisFacts) -> tuple[Evidence, dict[str, Word]] | None:
    """The quota on devices' amounts of which the largest share is used."""
    found = []
    for quota in facts.quotas or ():
        for name, amount in quota.hard.items():
            hard, used = parse_whole(amount), parse_whole(quota.used.get(name, "0"))
            # Kubernetes counts `requests.nvidia.com/…` itself, HAMi what it calls `limits.nvidia.com/…`.
            if name.startswith(_QUOTA_PREFIX) and "/" in name and hard and used is not None:
                found.append((used / hard, name, used, hard, quota.source))
    if not found:
        return None
    _, name, used, hard, source = max(found, key=lambda usage: usage[:2])
    return source, {"resource": name, "used": used, "hard": hard}


def _of_devices(groups: Sequence[RefusedNodes], facts: DiagnosisFacts, attempt: Evidence) -> list[Evidence]:
    """Devices that were refused, of the most important reasons, with their numbers."""
    shown = []
    for group in groups[:_MAX_REASONS]:
        for row in rows_of(group, facts)[:_MAX_DEVICES]:
            numbers = {name: value for name in _NUMBERS if (value := getattr(row, name)) is not None}
            words = " ".join(filter(None, (row.node, row.uuid, row.model, row.verdict)))
            shown.append(Evidence("devices", attempt.record, attempt.at, attempt.reported_by, numbers, words))
    return shown
