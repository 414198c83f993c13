"""Consecutive attempts of one pod that ended alike: one episode, and the changes that ended it.

An episode is not counted anywhere: it consists of the attempts that name it, so that no attempt counts twice however
often it is read. The previous attempt decides to which episode an attempt belongs.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from engine.summaries.messages import summarize_filter
from engine.summaries.reports import KUBE_EVENTS
from engine.summaries.retries import may_repeat
from engine.summaries.text import NODE_UNREGISTERED, cut, write_refusal
from schemas.documents.attempts import Digests, list_reasons
from schemas.events import (
    FITS,
    MAX_REPEATED_TEXT,
    NOT_REACHED,
    PICKED,
    UNREGISTERED,
    AttemptRepeated,
    AttemptSummarized,
    PublishedAttempt,
    PublishedReport,
    Report,
)

# A drained rack changes hundreds of nodes at once, and every part of the summary repeats these lines.
MAX_CHANGES: Final = 20
"""Limit of the lines; the lines above it are counted."""
_STATE_BYTES: Final = 240
"""Size of the former and of the present state in one line. An error may quote a complete API object, and every part of
a summary repeats the lines."""
_FIT: Final = "fit"


def continues_episode(before: PublishedAttempt | None, summary: AttemptSummarized, digests: Digests) -> bool:
    """Tell whether the attempt ended as the previous one did."""
    return before is not None and (before.verdict_digest, before.status) == (digests.verdicts, summary.status)


def repeats(
    before: PublishedAttempt | None, summary: AttemptSummarized, digests: Digests, *, is_unchanged: bool = False
) -> bool:
    """Tell whether the attempt adds nothing to the previous one. Only attempts without a chosen node qualify: no bind
    can follow them. ``is_unchanged``: its source found it unchanged."""
    return (
        before is not None
        and continues_episode(before, summary, digests)
        # Equal verdicts may have other numbers or requests behind them: a reference would lose these.
        and before.detail_digest == digests.detail
        and digests.added in ("", before.added_digest)
        # What is missing may arrive later and differ.
        and summary.complete
        and summary.status == "failed"
        and summary.bind is None
        and may_repeat(summary.started_at, before.whole.started_at, is_unchanged=is_unchanged)
    )


def build_repetition(before: PublishedAttempt, summary: AttemptSummarized, digests: Digests) -> AttemptRepeated:
    """Build the record of an attempt that ``repeats`` the previous one, with what the worker added to it."""
    # The cluster's events have the last word: until both attempts have theirs, the texts of either may still change.
    has_last_word = _has_cluster_events(before.reports) and _has_cluster_events(summary.reports)
    is_apart = not has_last_word or digests.added == "" or digests.added != before.added_digest
    return AttemptRepeated.model_construct(
        cluster=summary.cluster,
        reports=summary.reports,
        attempt_id=summary.attempt_id,
        pod=summary.pod,
        scheduler=summary.scheduler,
        started_at=summary.started_at,
        version=summary.version,
        status=summary.status,
        ended_at=summary.ended_at,
        # The attempt with the detail, never another repetition: a reader needs at most one other record.
        repeats=before.whole.attempt_id,
        repeats_started_at=before.whole.started_at,
        episode=before.episode,
        episode_started_at=before.episode_started_at,
        offered_nodes=summary.offered_nodes,
        fit_nodes=summary.fit_nodes,
        judged_devices=summary.judged_devices,
        reasons=list_reasons(summary),
        text=summarize_filter(summary)[:MAX_REPEATED_TEXT],
        scheduler_message=summary.scheduler_message if is_apart else None,
        nominated=summary.nominated if is_apart else None,
        description=summary.description,
        first_judged_at=summary.first_judged_at,
        attempts=summary.attempts,
        wait=summary.wait,
    )


def _has_cluster_events(reports: Sequence[PublishedReport] | Sequence[Report]) -> bool:
    return any(report.source == KUBE_EVENTS for report in reports)


def describe_changes(before: AttemptSummarized, after: AttemptSummarized) -> list[str]:
    """Describe the differences between two attempts, a line each: ``node7: 3/8 CardInsufficientMemory became fit``."""
    changes = list(_iterate_changes(before, after))
    over = len(changes) - MAX_CHANGES
    return [*changes[:MAX_CHANGES], f"and {over} more"] if over > 0 else changes


def _iterate_changes(before: AttemptSummarized, after: AttemptSummarized) -> Iterator[str]:
    yield from _compare_phases(before, after)
    was, now = _describe_nodes(before), _describe_nodes(after)
    # Sorted, so that the same two attempts always give the same first ``MAX_CHANGES`` lines.
    for node in sorted(was.keys() | now.keys()):
        if was.get(node) != now.get(node):
            yield _describe_change(node, was.get(node, "not offered"), now.get(node, "not offered"))


def _compare_phases(before: AttemptSummarized, after: AttemptSummarized) -> Iterator[str]:
    for subject, old, new in (
        ("filter", before.error, after.error),
        ("bind", _describe_bind(before), _describe_bind(after)),
        ("refused nodes", _describe_refusals(before), _describe_refusals(after)),
    ):
        if old != new:
            yield _describe_change(subject, old or "nothing", new or "nothing")


def _describe_change(subject: str, old: str, new: str) -> str:
    return f"{subject}: {cut(old, _STATE_BYTES)} became {cut(new, _STATE_BYTES)}"


def _describe_bind(summary: AttemptSummarized) -> str:
    if summary.bind is None:
        return ""
    return f"bound to {summary.bind.node}" if summary.bind.bound else summary.bind.error or "failed"


def _describe_refusals(summary: AttemptSummarized) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(summary.refused_nodes.items()))


def _describe_nodes(summary: AttemptSummarized) -> dict[str, str]:
    """Map each node to its outcome in words."""
    refusals = [write_refusal(refusal) for refusal in summary.refusals]
    words = [_to_outcome(verdict) for verdict in summary.verdicts]
    rows: Sequence[tuple[str, int, int]] = list(
        zip(summary.nodes, summary.verdict.tolist(), summary.refusal.tolist(), strict=True)
    )
    return {node: refusals[refusal] if refusal >= 0 else words[verdict] for node, verdict, refusal in rows}


def _to_outcome(verdict: str) -> str:
    return {PICKED: _FIT, FITS: _FIT, UNREGISTERED: NODE_UNREGISTERED, NOT_REACHED: NOT_REACHED}.get(verdict, verdict)
