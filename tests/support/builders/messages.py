"""Messages for tests: a test says what differs from the first refusal of a pod."""

from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.events import MessageEmitted, PodRef

BEGAN = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
TRAINER = PodRef(namespace="ml", name="trainer", uid="uid-1")


def a_message(number: int = 0, text: str = "3 nodes NumaNotFit(a,b,c)", **fields: Any) -> MessageEmitted:
    """A message of the attempt ``number`` seconds after the first."""
    time = BEGAN + timedelta(seconds=number)
    common = {
        "cluster": "default",
        "pod": TRAINER,
        "scheduler": "hami-scheduler",
        "severity": "Warning",
        "reason": "FilteringFailed",
    }
    fields_of_attempt = {
        "attempt_id": f"{number:032x}",
        "started_at": time,
        "reported_at": time,
        "code": "NumaNotFit",
        "message": text,
    }
    return MessageEmitted.model_validate(common | fields_of_attempt | fields)
