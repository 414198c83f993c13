"""Messages for tests: a test says what differs from the first refusal of a pod."""

from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.events import MessageLine, MessagesEmitted, PodMessage, PodRef

BEGAN = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
TRAINER = PodRef(namespace="ml", name="trainer", uid="uid-1")


def a_message(number: int = 0, text: str = "3 nodes NumaNotFit(a,b,c)", **fields: Any) -> PodMessage:
    """A message of the attempt ``number`` seconds after the first."""
    common: dict[str, Any] = {
        "cluster": "default",
        "pod": TRAINER,
        "scheduler": "hami-scheduler",
        "severity": "Warning",
        "reason": "FilteringFailed",
        "workload": "",
    }
    fields_of_attempt = {
        "attempt_id": f"{number:032x}",
        "reported_at": BEGAN + timedelta(seconds=number),
        "code": "NumaNotFit",
        "message": text,
    }
    return PodMessage(**(common | fields_of_attempt | fields))


def emit(*messages: PodMessage) -> MessagesEmitted:
    """Put messages of one phase of an attempt into one record."""
    first = messages[0]
    return MessagesEmitted(
        cluster=first.cluster, attempt_id=first.attempt_id, pod=first.pod, scheduler=first.scheduler,
        started_at=first.reported_at, reported_at=first.reported_at, severity=first.severity, reason=first.reason,
        lines=[MessageLine(code=message.code, message=message.message) for message in messages],
        workload=first.workload,
    )  # fmt: skip
