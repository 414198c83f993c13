"""A retry that ended as the attempt before it did: published as its differences alone, and put together again.

A pending pod is tried again every few seconds or minutes, and most of the time nothing has changed. The
verdicts of such an attempt on thousands of nodes are stored once, with the attempt that it repeats.
"""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from engine.summaries.reports import KUBE_EVENTS, filter_giver
from schemas.codec.records import encode_value
from schemas.documents.attempts import Digests, verdict_digest
from schemas.events import AttemptRepeated, AttemptSummarized, PublishedAttempt

MAX_HOURS_BACK: Final = 6
"""A repetition never refers further back, nor to the day before: what it refers to is kept as long as it is itself."""

_NODE_COLUMNS: Final = ("nodes", "verdicts", "verdict", "score", "refused_by", "refusals", "refusal", "score_terms")
_OWN: Final = frozenset(
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
"""What an attempt that repeats another says for itself: it has no ``changes``, and its ``status`` is the other's."""

# The cluster's events come seconds after the scheduler's own report: a retry must be known as one before they do.
ADDED: Final = ("scheduler_message", "nominated", "description")
"""What another source may add to the report that has the verdicts."""


def digests_of(summary: AttemptSummarized) -> Digests:
    """What two attempts of a pod are compared by.

    The digests of details are equal for two whole summaries that differ in nothing but what a repetition says for
    itself. Where a better source has the verdicts, what the cluster's events add is not in it, but in ``added``.
    """
    verdicts = verdict_digest(summary)
    source = filter_giver(summary)
    without = _NODE_COLUMNS if source is None or source.source == KUBE_EVENTS else (*_NODE_COLUMNS, *ADDED)
    rest = {name: value for name, value in summary.__dict__.items() if name not in _OWN and name not in without}
    # The verdicts' digest covers the node columns but the scores.
    detail = encode_value(rest) + verdicts.encode() + summary.score.astype("<f4").tobytes()
    return Digests(verdicts, _digest(detail), _digest(_added(summary)) if len(summary.reports) > 1 else "")


def _added(summary: AttemptSummarized) -> bytes:
    return encode_value({name: getattr(summary, name) for name in ADDED})


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def may_repeat(started_at: datetime, whole_started: datetime) -> bool:
    """Is the whole summary near enough to be referred to?"""
    # Indices are daily and deleted by the day, so what is referred to goes together with what refers to it.
    return started_at.date() == whole_started.date() and started_at - whole_started <= timedelta(hours=MAX_HOURS_BACK)


def resolve(repeated: AttemptRepeated, whole: AttemptSummarized) -> AttemptSummarized:
    """The whole summary of a repetition. Raises ``ValueError`` where ``whole`` is not what it refers to."""
    if whole.attempt_id != repeated.repeats:
        raise ValueError(f"attempt {repeated.attempt_id} repeats {repeated.repeats}, not {whole.attempt_id}")
    own = (
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
    fields = {name: getattr(repeated, name) for name in own} | own_texts(repeated)
    # Records of before these fields do not have them.
    fields |= {"description": repeated.description} if repeated.description else {}
    fields |= {"first_judged_at": repeated.first_judged_at} if repeated.first_judged_at else {}
    fields |= {"wait": repeated.wait} if repeated.wait else {}
    return whole.model_copy(update=fields | {"changes": []})


def own_texts(repeated: AttemptRepeated | PublishedAttempt) -> dict[str, str]:
    """What a repetition does not share with the attempt that it repeats: to one of them another source has added it."""
    texts = {"scheduler_message": repeated.scheduler_message, "nominated": repeated.nominated}
    return {name: text for name, text in texts.items() if text is not None}
