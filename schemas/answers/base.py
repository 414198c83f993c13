"""Base of all answers, and the lines of a watch of one: one event a line, as Kubernetes writes them."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

NUMBERS: Final = (
    "By name with the unit: `_mib`, `_percent` (of one device) or `_seconds`; a name without one counts what it says. "
    "The amounts of a quota begin with its resource, whose unit they have."
)
"""The description of numbers by name."""


class Answer(BaseModel):
    # The JSON is put together from bytes (``engine.summaries.answer``): a field that no model has must fail the tests.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class WatchMetadata(Answer):
    namespace: str
    name: str
    uid: str = Field(description="Empty where the source does not say it.")
    resourceVersion: str = Field(  # noqa: N815 - as Kubernetes writes it
        description="The place behind this event: give it back as `resourceVersion`, to any replica."
    )


class WatchEvent(Answer):
    """One line of a watch, or the data of one Server-Sent Event."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: dict[str, Any] = Field(
        description="`kind`, `apiVersion` and `metadata`, and beside them the fields of the answer without watch: "
        "`SchedulerLog` of a pod, `AttemptFound` of attempts, `PodWaiting` of pending pods (of one that was placed "
        "only its names and paths). BOOKMARK: `metadata` alone, with the place so far. ERROR: a `Status` with the "
        "cause, after which the stream ends."
    )


ANSWERS: Final = (WatchEvent, WatchMetadata)
"""Each has a JSON Schema of its own."""
