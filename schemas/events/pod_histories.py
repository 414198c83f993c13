"""What the worker must know of a pod's past to compare its next attempt: a state of its own, on a compacted topic."""

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from schemas.events.base import TYPE_PREFIX, Count, Event, Flag, Integer, Model, Moment, PodRef
from schemas.events.summaries import Status


class SummaryLocation(Model):
    """Where the records of a whole summary lie on the topic of attempts."""

    attempt_id: str
    started_at: Moment
    partition: Count
    offsets: list[Count] = Field(min_length=1)
    """Of its parts, in their order."""


class PublishedAttempt(Model):
    """An attempt that was published, reduced to the fields that the next one is compared with."""

    attempt_id: str
    started_at: Moment
    version: Count
    status: Status
    ended_at: Moment | None = None
    """As in its summary, which a repetition has no other place for."""
    verdict_digest: str
    """Equal for attempts with equal verdicts on every node."""
    detail_digest: str
    """Equal for attempts that differ in nothing but times."""
    episode: str
    episode_started_at: Moment
    may_get_more: Flag
    """Can another record about the attempt come?"""
    whole: SummaryLocation
    """Its own summary, or that of the attempt that it repeats."""


class PodHistoryChanged(Event):
    """The latest two attempts of a pod at one scheduler that the worker has published.

    It is written after the records of the attempt are on their topics, into the partition of the same number as the
    pod's decisions; the latest of a key holds. A worker reads the histories of a partition before it
    publishes its first attempt.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "pod.history.changed.v1"

    pod: PodRef
    scheduler: str
    published_until: Integer
    """The offset of the decision that completed the attempt that was published last: what completed before is
    published. -1 where time alone has completed any."""
    latest: PublishedAttempt
    previous: PublishedAttempt | None = None
    """The one that began before it."""

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
    """The key of a pod's history at one scheduler."""
    # By UID too: a pod of the same name that was made later has another history. By scheduler: another one's verdicts
    # are no repetition.
    return f"{cluster}/{pod.namespace}/{pod.name}/{pod.uid}/{scheduler}"
