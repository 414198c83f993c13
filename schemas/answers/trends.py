"""The JSON that the API gives to people about counts over time."""

from typing import Final, Literal

from pydantic import Field

from .base import Answer

Count = Literal["attempts", "nodes", "devices", "waited_seconds", "held_seconds", "waited_device_seconds"]


class TrendChange(Answer):
    """The level of a series changes at the beginning of a bucket."""

    at: str
    before: float = Field(description="Per bucket, on average, since the change before.")
    after: float = Field(description="Per bucket, on average, until the next change.")


class TrendSeries(Answer):
    """The counts of one reason, namespace, …."""

    key: str
    total: int
    total_before: int | None = Field(
        description="Sum in the range of the same length before this one, of more than 7 days ago in whole hours; null "
        "where counts no longer go back so far."
    )
    values: list[int] = Field(description="An entry for each of `times`.")
    changes: list[TrendChange]


class Trends(Answer):
    """Counts over time by one dimension, the largest first."""

    by: str
    count: Count
    since: str
    until: str
    interval_seconds: int
    times: list[str] = Field(description="Start of each bucket.")
    items: list[TrendSeries]
    other: TrendSeries | None = Field(
        description="Sum of the series that are not in `items`; null where there is none. Its key is empty."
    )
    unknown: TrendSeries | None = Field(
        None,
        description="With `by=obstacle` and without `key`: attempts that placed no pod, of which no obstacle is "
        "counted: a bind has no result yet, or they were counted by an earlier version. Of devices held or waited for: "
        "those of pods of which no workload, queue or priority class is recorded, or on nodes of no pool. Null where "
        "there is none.",
    )

    def list_series(self, unknown: str) -> list[TrendSeries]:
        """List all series that add up to the counts of the range; what is not known gets this key."""
        ends = (self.other, self.unknown and self.unknown.model_copy(update={"key": unknown}))
        return [*self.items, *filter(None, ends)]


ANSWERS: Final = (Trends,)
"""Each has a JSON Schema of its own."""
