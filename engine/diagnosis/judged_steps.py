"""Questions that the cluster's objects answer: whether a node would take the pod, and why the others would not."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, Literal

from engine.diagnosis.counted_reasons import parse_counted_reasons
from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.headline import FITS_NOW
from engine.diagnosis.layers.group_members import find_group
from engine.diagnosis.outcome import FoundObstacle, JudgedPod, TreeStep, Word, to_answer
from engine.diagnosis.texts import NAMED_TAINTS, find_obstacle_of_reason, get_counted_resource, write_phrase
from engine.diagnosis.wording import cut_first_line, describe_duration, shorten_list
from engine.hami.reason_codes import ReasonCode
from schemas.answers.diagnosis import CountComparison
from schemas.events import AttemptSummarized
from schemas.reasons import read_catalogue

Agreement = Literal["equal", "different", "not compared"]
_AGREES: Final = "kube-scheduler counted the same nodes under the same reasons"
_JUDGED: Final = "judged"
"""Kind of the evidence that verdicts were worked out on the cluster's objects."""
_COMPARISONS: Final[Mapping[str, str]] = {"equal": "counts_equal", "different": "counts_differ"}
"""Phrase of each agreement."""
_TAINTED: Final = "TaintNotTolerated"
_TAINT_CODES: Final = ("NodeNotReady", *NAMED_TAINTS)
_RETRIED_WITHIN: Final = timedelta(minutes=1)
"""Time within which a scheduler usually tries a pod again after something has changed."""
_DIFFERS: Final = "kube-scheduler counted otherwise: {counts}"


def check_judged(facts: DiagnosisFacts, judged: JudgedPod) -> TreeStep:
    """Check whether a node would take the pod now, and hold the counts against those that the scheduler wrote."""
    attempt = facts.attempt
    counts = attempt.refused_nodes if attempt else {}
    evidence = [Evidence(_JUDGED, "", facts.now, numbers={"nodes": judged.total, "fitting_nodes": len(judged.fitting)})]
    if counts:
        is_same = sum_by_obstacle(counts) == sum_by_obstacle(judged.counts)
        words = _AGREES if is_same else _DIFFERS.format(counts=_list_counts(counts))
        evidence.append(Evidence("attempt", attempt.attempt_id if attempt else "", facts.now, words=words))
    obstacles = _select_counted(judged, counts) if judged.fitting else list(judged.obstacles)
    # Other members of a gang hold what this one would find by itself.
    if judged.fitting and judged.is_certain and attempt and not attempt.chosen and not find_group(facts):
        obstacles.append(_describe_fit(judged, attempt, facts.now - attempt.started_at))
    is_open = bool(judged.fitting) if judged.is_certain or not judged.fitting else None
    return TreeStep("NodesOpen", to_answer(is_open), evidence, facts.select_unknown("nodes"), obstacles)


def uses_judged(steps: Iterable[TreeStep]) -> bool:
    """Tell whether the answer stands on verdicts that were worked out on the cluster's objects."""
    return any(evidence.kind == _JUDGED for step in steps for evidence in step.evidence)


def compare_with_scheduler(facts: DiagnosisFacts, judged: JudgedPod | None) -> CountComparison | None:
    """Compare verdicts on the objects with the scheduler's counts; those of a reader where none are given now."""
    attempt = facts.attempt
    theirs = dict(attempt.refused_nodes) if attempt else _count_stated(facts)
    if judged and not (judged.fitting and _is_explained(facts)):
        of_filters = {reason: count for reason, count in theirs.items() if not is_of_extender(reason)}
        is_equal = sum_by_obstacle(of_filters) == sum_by_obstacle(judged.counts)
        is_compared = bool(theirs) and judged.is_certain
        agreement: Agreement = "not compared" if not is_compared else "equal" if is_equal else "different"
        if judged.causes:
            causes = shorten_list(judged.causes)
            return _write_comparison(agreement, judged.counts, theirs, name="counts_malformed", causes=causes)
        return _write_comparison(agreement, judged.counts, theirs, sorted(judged.unread))
    if attempt is None or attempt.reconstruction is None:
        return None
    reconstruction = attempt.reconstruction
    return _write_comparison(reconstruction.agreement, reconstruction.counts, theirs, reconstruction.unread)


def _count_stated(facts: DiagnosisFacts) -> dict[str, int]:
    """Count the nodes by reason as the pod's condition does, where no attempt was recorded."""
    condition = facts.pod.find_condition("PodScheduled") if facts.pod else None
    counted = parse_counted_reasons(condition.message) if condition and condition.status == "False" else None
    return dict(counted.reasons) if counted else {}


def _is_explained(facts: DiagnosisFacts) -> bool:
    """Tell whether a pod that fits by itself was refused for others: its gang, or what nodes had at that time."""
    reconstruction = facts.attempt.reconstruction if facts.attempt else None
    return facts.gang is not None or (reconstruction is not None and reconstruction.agreement == "equal")


def _write_comparison(
    agreement: Agreement,
    ours: Mapping[str, int],
    theirs: Mapping[str, int],
    unread: Sequence[str] = (),
    *,
    name: str = "",
    causes: Word = "",
) -> CountComparison:
    if unread:
        name = "counts_unread" if ours else "counts_open"
    name = name or _COMPARISONS.get(agreement, "counts_uncertain" if theirs else "counts_not_compared")
    words: dict[str, Word] = {
        "ours": _list_counts(ours) if ours else write_phrase("no_refusal"),
        "theirs": _list_counts(theirs) if theirs else write_phrase("no_counts"),
        "unread": shorten_list(list(unread)),
        "causes": causes,
    }
    return CountComparison(
        agreement=agreement, counts=dict(ours), scheduler_counts=dict(theirs), text=write_phrase(name, **words)
    )


def is_of_extender(reason: str) -> bool:
    """Tell whether an extender such as HAMi gave the reason: it looks at the nodes that the filters let pass."""
    return find_obstacle_of_reason(reason)[0] in read_catalogue()


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {cut_first_line(reason)}" for reason, number in counts.items())


def _select_counted(judged: JudgedPod, counts: Mapping[str, int]) -> list[FoundObstacle]:
    """Select the obstacles of as many nodes as the scheduler counted for the same reason."""
    sums = {code: count for (code, _), count in sum_by_obstacle(counts).items()}
    # kube-scheduler has one reason for all taints.
    codes = {code: _TAINTED if code in _TAINT_CODES else code for code in (item.code for item in judged.obstacles)}
    judged_sums = Counter[str]()
    for obstacle in judged.obstacles:
        judged_sums[codes[obstacle.code]] += obstacle.node_count
    return [
        obstacle
        for obstacle in judged.obstacles
        if sums.get(codes[obstacle.code]) in (obstacle.node_count, judged_sums[codes[obstacle.code]])
    ]


def _describe_fit(judged: JudgedPod, attempt: AttemptSummarized, since: timedelta) -> FoundObstacle:
    words: dict[str, Word] = {
        "scheduler": attempt.scheduler,
        "namespace": attempt.pod.namespace,
        "fitting": len(judged.fitting),
        "total": judged.total,
        "nodes": shorten_list(list(judged.fitting)),
        "time": f"{attempt.started_at:%Y-%m-%d %H:%M:%S} UTC",
        "ago": describe_duration(since),
    }
    clauses = ["untried"] if since >= _RETRIED_WITHIN else []
    return FoundObstacle(FITS_NOW, words, nodes=list(judged.fitting), clauses=clauses)


def list_unexplained(attempt: AttemptSummarized, judged: JudgedPod) -> dict[str, int]:
    """List the counts of the scheduler that the judge has no reason for."""
    explained: set[str] = {find_obstacle_of_reason(reason)[0] for reason in judged.counts}
    if any(obstacle.code not in explained for obstacle in judged.obstacles):
        # Up to v2.9 HAMi gives kube-scheduler no other reason for devices, which were judged one by one here.
        explained.add(ReasonCode.NODE_UNFIT_POD)
    return {
        reason: count
        for reason, count in attempt.refused_nodes.items()
        if find_obstacle_of_reason(reason)[0] not in explained
    }


def counts_only(attempt: AttemptSummarized) -> bool:
    """Tell whether the attempt's source counts nodes by reason; a reader may have worked out which they are."""
    is_counted = attempt.reconstruction is not None or not len(attempt.nodes)
    return bool(attempt.refused_nodes) and is_counted and not attempt.chosen


def sum_by_obstacle(counts: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Sum the counts by obstacle and resource: releases of kube-scheduler word some reasons differently."""
    sums: dict[tuple[str, str], int] = {}
    for reason, count in counts.items():
        code, details = find_obstacle_of_reason(reason)
        key = code, get_counted_resource(details) if code == "InsufficientResource" else ""
        sums[key] = sums.get(key, 0) + count
    return sums
