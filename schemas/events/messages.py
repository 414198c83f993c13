"""The lines of event text about pods."""

from datetime import datetime
from typing import ClassVar, Literal

from .base import TYPE_PREFIX, AttemptEvent
from .field_types import Moment


class MessageEmitted(AttemptEvent):
    """One line of event text about a pod, as ``kubectl describe`` shows it."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "message.emitted.v1"

    reported_at: Moment
    severity: Literal["Normal", "Warning"]
    reason: str
    """``FilteringFailed``, ``FilteringSucceed``, ``BindingFailed``, ``BindingSucceed``."""
    code: str = ""
    """The reason code that the line counts nodes for; empty for the line about the whole attempt."""
    message: str
    """The line as ``kubectl describe`` shows it."""
    workload: str = ""
    """Workload of the pod, such as ``Job/train``; empty for a pod without an owner and where no source reports it."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/message/{self.reason}/{self.code}"

    @property
    def time(self) -> datetime:
        return self.reported_at

    @property
    def source(self) -> str:
        return "/pipeline"
