"""What the worker must know of a pod's past to compare its next attempt: a state of its own, on a compacted topic."""

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
"""Those that began so long before the latest are kept too: a pod may be tried several times a second."""
MAX_ATTEMPTS: Final = 16


class SummaryLocation(Model):
    """Where the records of a whole summary lie on the topic of attempts."""

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
    knows_only_bind: Flag = False
    """Is ``ended_at`` the time of the bind, because the source does not say when the filter ended?"""


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
    """As in its summary, which a repetition has no other place for."""
    chosen: str | None = None
    is_refused: Flag
    """Did the filter end without a node, after nodes were judged?"""
    reports: Annotated[list[PublishedReport], Field(min_length=1)]
    """As in its summary."""
    first_judged_at: Moment
    """As in its summary."""
    attempts: Count = 0
    """As in its summary."""
    verdict_digest: str
    """Equal for attempts with equal verdicts on every node."""
    detail_digest: str
    """Equal for attempts that differ in nothing but times."""
    added_digest: str = ""
    """Equal for attempts to which other sources add the same; empty where only one reported the attempt."""
    episode: str
    episode_started_at: Moment
    may_get_more: Flag
    """Can another record about the attempt come?"""
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
    """Those that began last, the latest first: ``KEPT_ATTEMPTS``, and up to ``MAX_ATTEMPTS`` of ``KEPT_SECONDS``."""

    description: PodDescription | None = None
    """Where the latest attempt's pod comes from, as any of its attempts has it; null where none has."""

    @property
    def latest(self) -> PublishedAttempt:
        return self.attempts[0]

    @property
    def id(self) -> str:
        return f"{self.key}/{self.latest.attempt_id}/{self.latest.version}/{self.published_until}"

    @property
    def key(self) -> str:
        return history_key(self.cluster, self.pod, self.scheduler)

    @property
    def time(self) -> datetime:
        return self.latest.started_at

    @property
    def source(self) -> str:
        return "/pipeline"


def history_key(cluster: str, pod: PodRef, scheduler: str) -> str:
    """The key of the history of a pod's name at one scheduler."""
    # By scheduler: another one's verdicts are no repetition. Not by UID: reports of one attempt may leave it out.
    return f"{cluster}/{pod.namespace}/{pod.name}/{scheduler}"
