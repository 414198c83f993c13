"""Retries that ended as the attempt before them did: published as their differences only, and restored by readers.

A pending pod is tried again every few seconds or minutes, and most of the time nothing has changed. The verdicts of
such an attempt on thousands of nodes are stored once, with the attempt that it repeats.
"""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from engine.summaries.merge import settle
from engine.summaries.reports import KUBE_EVENTS, PARTS, find_filter_giver, find_giver
from schemas.codec.records import encode_value
from schemas.documents.attempts import Digests, compute_verdict_digest
from schemas.events import (
    SCHEDULER,
    UNCHANGED_FOR,
    AttemptRepeated,
    AttemptSummarized,
    AttemptUnchanged,
    PublishedAttempt,
    Report,
)

MAX_BACK: Final = timedelta(hours=6)
"""Longest time that a repetition refers back. It never refers to the day before, so that both are deleted together."""

_NODE_COLUMNS: Final = ("nodes", "verdicts", "verdict", "score", "refused_by", "refusals", "refusal", "score_terms")
_ATTEMPT_FIELDS: Final = frozenset(
    {
        "attempt_id",
        "started_at",
        "ended_at",
        "version",
        "episode",
        "episode_started_at",
        "changes",
        "reports",
        "first_judged_at",
        "attempts",
        "wait",
    }
)
"""Fields that an attempt has for itself when it repeats another: it has no ``changes``, and its ``status`` is the
other's."""

# The cluster's events come seconds after the scheduler's own report: a retry must be recognized before they arrive.
ADDED: Final = ("scheduler_message", "nominated", "description")
"""Fields that another source may add to the report that has the verdicts."""


def derive_digests(summary: AttemptSummarized) -> Digests:
    """Derive the digests by which two attempts of a pod are compared.

    The digests of details are equal for two full summaries that differ only in the fields that a repetition has for
    itself. If a better source has the verdicts, the additions of the cluster's events are not in them, but in
    ``added``.
    """
    verdicts = compute_verdict_digest(summary)
    source = find_filter_giver(summary)
    without = _NODE_COLUMNS if source is None or source.source == KUBE_EVENTS else (*_NODE_COLUMNS, *ADDED)
    shared = {
        name: value for name, value in summary.__dict__.items() if name not in _ATTEMPT_FIELDS and name not in without
    }
    if summary.reconstruction:
        # Its numbers change with every pod that comes or goes; a repetition has them in ``wait``.
        shared["reconstruction"] = summary.reconstruction.model_copy(update={"obstacle": None})
    # The verdicts' digest covers the node columns except the scores.
    detail = encode_value(shared) + verdicts.encode() + summary.score.astype("<f4").tobytes()
    return Digests(verdicts, _digest(detail), _digest(_encode_added(summary)) if len(summary.reports) > 1 else "")


def reuse_digests(original: PublishedAttempt, summary: AttemptSummarized) -> Digests | None:
    """Return the digests of an unchanged attempt, which are those of the attempt from which it was restored.

    None where one of both has reports of other sources too, or the attempt could not be restored: its digests are its
    own.
    """
    if not summary.complete or len(summary.reports) > 1 or len(original.reports) > 1:
        return None
    return Digests(original.verdict_digest, original.detail_digest)


def _encode_added(summary: AttemptSummarized) -> bytes:
    return encode_value({name: getattr(summary, name) for name in ADDED})


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def may_repeat(started_at: datetime, full_started: datetime, *, is_unchanged: bool = False) -> bool:
    """Tell whether the full summary is near enough to be referred to; ``is_unchanged``: by an attempt that its source
    found unchanged."""
    # The devices of such an attempt are nowhere but with the one that it repeats: of others there are enough for that.
    longest = MAX_BACK if is_unchanged else MAX_BACK - UNCHANGED_FOR
    # Indices are daily and deleted by the day, so a repetition is deleted together with the summary that it refers to.
    return started_at.date() == full_started.date() and started_at - full_started <= longest


def resolve(repeated: AttemptRepeated, full_summary: AttemptSummarized) -> AttemptSummarized:
    """Restore the full summary of a repetition. Raises ``ValueError`` if ``full_summary`` is not what it refers to."""
    if full_summary.attempt_id != repeated.repeats:
        raise ValueError(f"attempt {repeated.attempt_id} repeats {repeated.repeats}, not {full_summary.attempt_id}")
    names = (
        "cluster",
        "attempt_id",
        "pod",
        "scheduler",
        "started_at",
        "version",
        "status",
        "ended_at",
        "episode",
        "episode_started_at",
        "reports",
        "attempts",
    )
    fields = {name: getattr(repeated, name) for name in names} | pick_unshared_texts(repeated)
    # Records from before these fields existed do not have them.
    fields |= {"description": repeated.description} if repeated.description else {}
    fields |= {"first_judged_at": repeated.first_judged_at} if repeated.first_judged_at else {}
    fields |= {"wait": repeated.wait} if repeated.wait else {}
    return full_summary.model_copy(update=fields | {"changes": []})


def restore_unchanged(event: AttemptUnchanged, original: AttemptSummarized) -> AttemptSummarized:
    """Restore the report of an attempt that its source found unchanged.

    ``original``: the full summary that the attempt which the event names has or repeats. Raises ``ValueError`` where
    another source has given the verdicts of the attempt in place of this one.
    """
    source = event.reader or SCHEDULER
    report_before = next((report for report in original.reports if report.source == source), None)
    giver = find_filter_giver(original)
    if report_before and giver and giver.source != source:
        raise ValueError(f"attempt {original.attempt_id} has the verdicts of {giver.source}, not of {source}")
    times = {"attempt_id": event.attempt_id, "started_at": event.started_at, "ended_at": event.ended_at}
    report = (report_before or Report(source=source, **times)).model_copy(
        update={**times, "bind_ended_at": None, "gives": []}
    )
    own_fields = {**times, "pod": event.pod, "reports": [report], "may_duplicate": [], "bind": None}
    return settle(original.model_copy(update=_list_additions(original, source) | own_fields))


def _list_additions(summary: AttemptSummarized, source: str) -> dict[str, Any]:
    """Map the fields that other sources have added to the verdicts to their values in a summary without them."""
    if len(summary.reports) == 1:
        return {}
    added = [part for part in PARTS if (giver := find_giver(summary, part)) and giver.source != source]
    fields = AttemptSummarized.model_fields
    names = [name for part in added for name in part.fields if name in ADDED]
    return {name: fields[name].get_default(call_default_factory=True) for name in names}


def pick_unshared_texts(repeated: AttemptRepeated | PublishedAttempt) -> dict[str, str]:
    """Return the texts that a repetition does not share with the attempt that it repeats, because another source has
    added them to one of the two only."""
    texts = {"scheduler_message": repeated.scheduler_message, "nominated": repeated.nominated}
    return {name: text for name, text in texts.items() if text is not None}
