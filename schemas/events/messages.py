"""The lines of event text about pods."""

from datetime import datetime
from hashlib import blake2b
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

from pydantic import Field

from .base import TYPE_PREFIX, AttemptEvent, Model, PodRef, build_pod_key
from .field_types import Moment

RECORD_CHARACTERS: Final = 9_000
"""Text of the lines of one record, eight of the longest: JSON writes a character in up to six bytes."""


class MessageLine(Model):
    """One line of event text."""

    code: str = ""
    """The reason code that the line counts nodes for; empty for the line about the whole attempt."""
    message: str
    """The line as ``kubectl describe`` shows it."""


class PodMessage(NamedTuple):
    """A line with the attempt that it is about."""

    cluster: str
    attempt_id: str
    pod: PodRef
    scheduler: str
    reported_at: datetime
    severity: Literal["Normal", "Warning"]
    reason: str
    code: str
    message: str
    workload: str

    @property
    def key(self) -> str:
        """The Kafka key of everything about the pod."""
        return build_pod_key(self.cluster, self.pod)


class MessagesEmitted(AttemptEvent):
    """The lines of event text about one phase of an attempt, filter or bind, in the order of ``kubectl describe``.

    The line about the whole attempt comes last. More than ``RECORD_CHARACTERS`` are several records.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "messages.emitted.v1"

    reported_at: Moment
    severity: Literal["Normal", "Warning"]
    reason: str
    """``FilteringFailed``, ``FilteringSucceed``, ``BindingFailed``, ``BindingSucceed``."""
    lines: Annotated[list[MessageLine], Field(min_length=1)]
    workload: str = ""
    """Workload of the pod, such as ``Job/train``; empty for a pod without an owner and where no source reports it."""

    @property
    def id(self) -> str:
        # With a digest of the lines: a report that changes one of them is another fact.
        text = "\x1f".join(part for line in self.lines for part in (line.code, line.message))
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{self.attempt_id}/messages/{self.reason}/{digest}"

    @property
    def time(self) -> datetime:
        return self.reported_at

    @property
    def source(self) -> str:
        return "/pipeline"

    def list_messages(self) -> list[PodMessage]:
        """List the lines, each with what all of them share."""
        return [
            PodMessage(
                self.cluster, self.attempt_id, self.pod, self.scheduler, self.reported_at, self.severity, self.reason,
                line.code, line.message, self.workload,
            )
            for line in self.lines
        ]  # fmt: skip
