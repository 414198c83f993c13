"""State of a pod's past with which the worker compares its next attempt, on a compacted topic of its own."""

from datetime import datetime
from typing import Annotated, ClassVar, Final

from pydantic import Field

from .base import TYPE_PREFIX, Event, Model, PodRef
from .field_types import Count, Flag, Integer, Moment
from .pods import PodDescription
from .summaries import Status

KEPT_ATTEMPTS: Final = 4
"""Attempts kept in a history. A further report of an older attempt no longer finds it."""
KEPT_SECONDS: Final = 60
"""Age, relative to the latest attempt, up to which further attempts are kept: a pod may be tried several times a
second."""
MAX_ATTEMPTS: Final = 16


class SummaryLocation(Model):
    """Position of the records of a full summary on the topic of attempts."""

    attempt_id: str
    started_at: Moment
    partition: Count
    offsets: list[Count] = Field(min_length=1)
    """The offsets of its parts, in their order."""


class PublishedReport(Model):
    """One source's report of an attempt, as far as it was published."""

    source: str
    attempt_id: str
    version: Count
    """The version of what this source alone reported."""
    started_at: Moment
    ended_at: Moment | None = None
    bind_ended_at: Moment | None = None
    """Both as in ``Report``."""
    repeats: str = ""
    """For an attempt that its source found unchanged: the id of the one that the source published in full."""
    knows_only_bind: Flag = False
    """True where ``ended_at`` is the time of the bind, because the source does not report the end of the filter."""


class PublishedAttempt(Model):
    """An attempt that was published, reduced to what its further reports are matched by and the next one is compared
    with."""

    attempt_id: str
    pod_uid: str
    """Empty where no source says it."""
    started_at: Moment
    version: Count
    status: Status
    ended_at: Moment | None = None
    """End of the filter, as in the summary; a repetition stores it nowhere else."""
    chosen: str | None = None
    is_refused: Flag
    """True if the filter ended without a node, after nodes were judged."""
    reports: Annotated[list[PublishedReport], Field(min_length=1)]
    """Reports, as in the summary."""
    first_judged_at: Moment
    """Start of the first known attempt of the pod, as in the summary."""
    attempts: Count = 0
    """Number of attempts of the pod, as in the summary."""
    verdict_digest: str
    """Equal for attempts with equal verdicts on every node."""
    detail_digest: str
    """Equal for attempts that differ in nothing but times."""
    added_digest: str = ""
    """Equal for attempts to which other sources add the same; empty where only one reported the attempt."""
    episode: str
    episode_started_at: Moment
    obstacle: str = ""
    """Code of the obstacle under which this version is counted; empty where it is under none."""
    may_get_more: Flag
    """True while another record about the attempt can arrive."""
    whole: SummaryLocation
    """Its own summary, or that of the attempt that it repeats."""
    scheduler_message: str | None = None
    """For a repetition: the value in its record."""
    nominated: str | None = None
    """For a repetition: the value in its record."""


class PodHistoryChanged(Event):
    """The latest attempts of a pod at one scheduler that the worker has published.

    It is written after the records of the attempt are on their topics, into the partition of the same number as the
    pod's decisions; the latest of a key holds. A worker reads the histories of a partition before it
    publishes its first attempt.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "pod.history.changed.v1"

    pod: PodRef
    """With the UID of the latest attempt. Pods of one name share a history: a log may name no UID."""
    scheduler: str
    published_until: Integer
    """The offset of the decision that completed the attempt that was published last: what completed before is
    published. -1 where time alone has completed any."""
    attempts: Annotated[list[PublishedAttempt], Field(min_length=1)]
    """Latest attempts, the newest first: ``KEPT_ATTEMPTS``, and up to ``MAX_ATTEMPTS`` of ``KEPT_SECONDS``."""

    description: PodDescription | None = None
    """Origin of the latest attempt's pod, from any of its attempts; null where none has it."""

    @property
    def latest(self) -> PublishedAttempt:
        return self.attempts[0]

    @property
    def id(self) -> str:
        return f"{self.key}/{self.latest.attempt_id}/{self.latest.version}/{self.published_until}"

    @property
    def key(self) -> str:
        return build_history_key(self.cluster, self.pod, self.scheduler)

    @property
    def time(self) -> datetime:
        return self.latest.started_at

    @property
    def source(self) -> str:
        return "/pipeline"


def build_history_key(cluster: str, pod: PodRef, scheduler: str) -> str:
    """Build the key of the history of a pod's name at one scheduler."""
    # By scheduler: another one's verdicts are no repetition. Not by UID: reports of one attempt may leave it out.
    return f"{cluster}/{pod.namespace}/{pod.name}/{scheduler}"
