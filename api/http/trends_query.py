"""Query parameters of counts over time, and of the report of failures that is made of them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from api.http.param_types import (
    OUTCOME_WORDS,
    Keyword,
    NamespaceName,
    Outcome,
    Query,
    TimeText,
    WholeNumber,
    parse_time,
)
from schemas.answers.trends import Count
from schemas.indices import MINUTES_SHOWN

Dimension = Literal[
    "obstacle", "reason", "namespace", "pool", "model", "result", "workload", "queue", "priority_class", "layer"
]
Interval = Literal["1m", "5m", "15m", "1h", "6h", "1d"]
INTERVALS: Final[dict[Interval, timedelta]] = {
    "1m": timedelta(minutes=1),
    "5m": timedelta(minutes=5),
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "1d": timedelta(days=1),
}
MAX_BUCKETS: Final = 1_500
"""Bound on the buckets of an answer: a day of minutes, two months of hours."""
_USUAL_BUCKETS: Final = 100
MAX_SERIES: Final = 50
DEVICE_SECONDS: Final = ("held_seconds", "waited_device_seconds")
"""Counts of seconds times devices, from placements."""
_DEVICES_BY: Final = ("namespace", "pool", "workload", "queue", "priority_class")
"""Dimensions of such counts."""
_DEFAULT_COUNTS: Final = {"layer": "waited_seconds", "priority_class": "held_seconds"}
_MAX_DEVICE_BUCKETS: Final = 200
"""Bound on the buckets of such an answer: each is a sum of its own in every series."""


class TrendRange(NamedTuple):
    """Range of complete buckets: ``since`` is the beginning of a bucket."""

    since: datetime
    until: datetime
    interval: timedelta

    @property
    def before(self) -> "TrendRange":
        """Range of the same length before this one."""
        return TrendRange(self.since - (self.until - self.since), self.since, self.interval)


class TrendsQuery(Query):
    by: Dimension = Field(
        "obstacle",
        description="Dimension of the series. `obstacle`: what decided an attempt, so each counts once. `reason`: "
        "every code for which it was refused on some node. `layer`: waits of pods that were placed, by the layer that "
        "held them.",
    )
    count: Count = Field(
        "attempts",
        description="Unit of the counts: `attempts`, or the `nodes` or `devices` that they judged (with `by=reason`: "
        "that they refused for the reason). With `by=layer` always `waited_seconds`. By namespace, pool, workload, "
        "queue and priority_class also `held_seconds`: devices that pods held, times seconds, where a part of a device "
        "counts for each pod that holds one; and `waited_device_seconds`: the waits of placed pods, times their "
        "devices, in the bucket in which they end.",
    )
    namespace: NamespaceName | None = Field(None, description="The pods' namespace.")
    result: Outcome | None = Field(None, description=f"Outcome of the attempts. {OUTCOME_WORDS}")
    key: Keyword | None = Field(None, description="Only the series with exactly this key: a reason, namespace, …")
    since: TimeText = Field(
        "24h", description="Start of the range, rounded down to a bucket: RFC 3339, or 15m, 2h, 7d ago."
    )
    until: TimeText | None = Field(None, description="End of the range (exclusive): RFC 3339, or 15m, 2h, 7d ago.")
    interval: Interval | None = Field(
        None,
        description="Length of a bucket; without it, the shortest that makes at most 100 buckets. An hour at least "
        "where attempts of more than 7 days ago are counted: of these hours are kept, and one that is in the range in "
        "part counts whole.",
    )
    limit: WholeNumber = Field(
        10, ge=1, le=MAX_SERIES, description="Number of series; the others are counted together."
    )
    format: Literal["json", "csv"] | None = Field(
        None, description="`csv`: one row per bucket and series, also by `Accept: text/csv`."
    )

    @model_validator(mode="before")
    @classmethod
    def _choose_count(cls, fields: Any) -> Any:
        """Choose a count for the dimensions by which no attempts are counted."""
        is_default = isinstance(fields, dict) and fields.get("by") in _DEFAULT_COUNTS and "count" not in fields
        return {**fields, "count": _DEFAULT_COUNTS[fields["by"]]} if is_default else fields

    @model_validator(mode="after")
    def _counts_its_unit(self) -> Self:
        if (self.by == "layer") != (self.count == "waited_seconds"):
            raise ValueError(f"count={self.count} with by={self.by}: by=layer counts waited_seconds, and only it does")
        if self.by == "layer" and self.result:
            raise ValueError("result with by=layer: waits are those of pods that were placed; leave it out")
        if self.count in DEVICE_SECONDS and self.by not in _DEVICES_BY:
            raise ValueError(f"count={self.count} with by={self.by}: devices are counted by {', '.join(_DEVICES_BY)}")
        if self.by == "priority_class" and self.count not in DEVICE_SECONDS:
            raise ValueError(f"by=priority_class with count={self.count}: it counts {' or '.join(DEVICE_SECONDS)}")
        if self.count in DEVICE_SECONDS and self.result:
            raise ValueError(f"result with count={self.count}: these are of pods that were placed; leave it out")
        return self

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        self.derive_range(datetime.now(UTC))
        return self

    def derive_range(self, now: datetime) -> TrendRange:
        """Derive the range in complete buckets. Raises ``ValueError`` if it is empty or has too many buckets."""
        since, until = parse_time(self.since, now), parse_time(self.until, now) if self.until else now
        if since >= until:
            raise ValueError(f"the range is empty: since={self.since} is not before until={self.until or 'now'}")
        span = until - since
        # Waits and held devices are counted from placements, whose times are exact.
        has_hours = self.by != "layer" and self.count not in DEVICE_SECONDS and since < now - MINUTES_SHOWN
        shortest = INTERVALS["1h" if has_hours else "1m"]
        fitting = (length for length in INTERVALS.values() if span <= length * _USUAL_BUCKETS and length >= shortest)
        interval = INTERVALS[self.interval] if self.interval else next(fitting, INTERVALS["1d"])
        if interval < shortest:
            raise ValueError(
                f"interval={self.interval}: counts of more than {MINUTES_SHOWN.days} days ago are of hours: take "
                "interval=1h or a longer one, or a later since"
            )
        bound = _MAX_DEVICE_BUCKETS if self.count in DEVICE_SECONDS else MAX_BUCKETS
        if span > interval * bound:
            raise ValueError(
                f"{span // interval} buckets of {interval} are more than {bound}: take a longer interval "
                f"({', '.join(INTERVALS)}) or a shorter range"
            )
        seconds = int(interval.total_seconds())
        return TrendRange(datetime.fromtimestamp(int(since.timestamp()) // seconds * seconds, UTC), until, interval)


ReportFormat = Literal["json", "csv", "markdown", "html"]


class ReportQuery(Query):
    namespace: NamespaceName | None = Field(None, description="The pods' namespace; without it, all namespaces.")
    since: TimeText = Field("7d", description="Start of the range: RFC 3339, or 15m, 2h, 7d ago.")
    until: TimeText | None = Field(None, description="End of the range (exclusive): RFC 3339, or 15m, 2h, 7d ago.")
    lang: Literal["en", "zh"] = Field("en", description="Language of meanings and remedies.")
    format: ReportFormat = Field(
        "json", description="`json`; `csv`: one row per number; `markdown`; `html`: one page with plots."
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        TrendsQuery(since=self.since, until=self.until).derive_range(datetime.now(UTC))
        return self
