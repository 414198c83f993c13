"""Attempts of one pod in a row that ended alike: one episode, and what made it end.

An episode is not counted anywhere: it is the attempts that name it, so that no attempt can count twice however often it
is read. Which episode an attempt belongs to follows from the one before it alone.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from engine.summaries.cut import cut
from engine.summaries.messages import filter_summary
from engine.summaries.retries import may_repeat
from engine.summaries.text import NODE_UNREGISTERED, refusal_text
from schemas.documents.attempts import Digests, reasons_of
from schemas.events import (
    FITS,
    MAX_REPEATED_TEXT,
    NOT_REACHED,
    PICKED,
    UNREGISTERED,
    AttemptRepeated,
    AttemptSummarized,
    PublishedAttempt,
)

# A drained rack changes hundreds of nodes at once, and every part of the summary repeats these lines.
MAX_CHANGES: Final = 20
"""Lines; what is left out is counted."""
_STATE_BYTES: Final = 240
"""Size of the former and of the present state in one line. An error may quote a whole API object, and every
part of a summary repeats the lines."""
_FIT: Final = "fit"


def continues_episode(before: PublishedAttempt | None, summary: AttemptSummarized, digests: Digests) -> bool:
    """Did the attempt end as the one before it?"""
    return before is not None and (before.verdict_digest, before.status) == (digests.verdicts, summary.status)


def repeats(before: PublishedAttempt | None, summary: AttemptSummarized, digests: Digests) -> bool:
    """Does the attempt add nothing to the one before? Only one without a chosen node: no bind can follow it."""
    return (
        before is not None
        and continues_episode(before, summary, digests)
        # Equal verdicts may stand on other numbers or other requests: those would be lost in a reference.
        and before.detail_digest == digests.detail
        and digests.added in ("", before.added_digest)
        # What is missing may arrive later and differ.
        and summary.complete
        and summary.status == "failed"
        and summary.bind is None
        and may_repeat(summary.started_at, before.whole.started_at)
    )


def repetition(before: PublishedAttempt, summary: AttemptSummarized, digests: Digests) -> AttemptRepeated:
    """What the topic gets of an attempt that ``repeats`` the one before it, with what the worker added to it."""
    # Where another source has added to one of them alone, the texts are not those of the other.
    is_apart = digests.added == "" or digests.added != before.added_digest
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
        reasons=reasons_of(summary),
        text=filter_summary(summary)[:MAX_REPEATED_TEXT],
        scheduler_message=summary.scheduler_message if is_apart else None,
        nominated=summary.nominated if is_apart else None,
        description=summary.description,
        first_judged_at=summary.first_judged_at,
        attempts=summary.attempts,
        wait=summary.wait,
    )


def differences(before: AttemptSummarized, after: AttemptSummarized) -> list[str]:
    """What differs between two attempts, a line each: ``node7: 3/8 CardInsufficientMemory became fit``."""
    changes = list(_changes(before, after))
    over = len(changes) - MAX_CHANGES
    return [*changes[:MAX_CHANGES], f"and {over} more"] if over > 0 else changes


def _changes(before: AttemptSummarized, after: AttemptSummarized) -> Iterator[str]:
    yield from _of_the_whole(before, after)
    was, now = _by_node(before), _by_node(after)
    # Sorted, so that the same two attempts always give the same first ``MAX_CHANGES`` lines.
    for node in sorted(was.keys() | now.keys()):
        if was.get(node) != now.get(node):
            yield _became(node, was.get(node, "not offered"), now.get(node, "not offered"))


def _of_the_whole(before: AttemptSummarized, after: AttemptSummarized) -> Iterator[str]:
    for what, one, other in (
        ("filter", before.error, after.error),
        ("bind", _bind(before), _bind(after)),
        ("refused nodes", _counts(before), _counts(after)),
    ):
        if one != other:
            yield _became(what, one or "nothing", other or "nothing")


def _became(what: str, one: str, other: str) -> str:
    return f"{what}: {cut(one, _STATE_BYTES)} became {cut(other, _STATE_BYTES)}"


def _bind(summary: AttemptSummarized) -> str:
    if summary.bind is None:
        return ""
    return f"bound to {summary.bind.node}" if summary.bind.bound else summary.bind.error or "failed"


def _counts(summary: AttemptSummarized) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(summary.refused_nodes.items()))


def _by_node(summary: AttemptSummarized) -> dict[str, str]:
    """The outcome of each node, in words."""
    refusals = [refusal_text(refusal) for refusal in summary.refusals]
    words = [_word(verdict) for verdict in summary.verdicts]
    rows: Sequence[tuple[str, int, int]] = list(
        zip(summary.nodes, summary.verdict.tolist(), summary.refusal.tolist(), strict=True)
    )
    return {node: refusals[refusal] if refusal >= 0 else words[verdict] for node, verdict, refusal in rows}


def _word(verdict: str) -> str:
    return {PICKED: _FIT, FITS: _FIT, UNREGISTERED: NODE_UNREGISTERED, NOT_REACHED: NOT_REACHED}.get(verdict, verdict)
