"""The parameters of counts over time."""

from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from api.http.param_types import Keyword, NamespaceName, TimeText, WholeNumber, parse_time
from api.http.query_base import Query
from schemas.answers.trends import Count

Dimension = Literal["reason", "namespace", "pool", "model", "result", "workload", "queue"]
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
"""A day of minutes, two months of hours."""
_USUAL_BUCKETS: Final = 100
MAX_SERIES: Final = 50


class TrendRange(NamedTuple):
    """Whole buckets: ``since`` is the beginning of one."""

    since: datetime
    until: datetime
    interval: timedelta

    @property
    def before(self) -> "TrendRange":
        """The range of the same length before this one."""
        return TrendRange(self.since - (self.until - self.since), self.since, self.interval)


class TrendsQuery(Query):
    by: Dimension = Field("reason", description="What is counted apart. reason: codes for which nodes were refused.")
    count: Count = Field(
        "attempts",
        description="attempts, or the nodes or devices that they judged; by=reason: that they refused for it.",
    )
    namespace: NamespaceName | None = Field(None, description="The pods' namespace.")
    result: Literal["succeeded", "failed", "pending"] | None = Field(None, description="How the attempts ended.")
    key: Keyword | None = Field(None, description="Only this reason, namespace, …, spelled exactly.")
    since: TimeText = Field("24h", description="From the bucket of this time on: RFC 3339, or 15m, 2h, 7d ago.")
    until: TimeText | None = Field(None, description="Before this time: RFC 3339, or 15m, 2h, 7d ago.")
    interval: Interval | None = Field(
        None, description="How long a bucket is; without it, the shortest that makes at most a hundred."
    )
    limit: WholeNumber = Field(
        10, ge=1, le=MAX_SERIES, description="How many series; what is left is counted together."
    )
    format: Literal["json", "csv"] | None = Field(
        None, description="csv: a row per bucket and series, also by `Accept: text/csv`."
    )

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        self.range(datetime.now(UTC))
        return self

    def range(self, now: datetime) -> TrendRange:
        """The whole buckets of the range. Raises ``ValueError`` for one that is empty, or has too many buckets."""
        since, until = parse_time(self.since, now), parse_time(self.until, now) if self.until else now
        if since >= until:
            raise ValueError(f"the range is empty: since={self.since} is not before until={self.until or 'now'}")
        span = until - since
        known = [self.interval] if self.interval else list(INTERVALS)
        fitting = (INTERVALS[name] for name in known if span <= INTERVALS[name] * _USUAL_BUCKETS)
        interval = INTERVALS[self.interval] if self.interval else next(fitting, INTERVALS["1d"])
        if span > interval * MAX_BUCKETS:
            raise ValueError(
                f"{span // interval} buckets of {interval} are more than {MAX_BUCKETS}: take a longer interval "
                f"({', '.join(INTERVALS)}) or a shorter range"
            )
        seconds = int(interval.total_seconds())
        return TrendRange(datetime.fromtimestamp(int(since.timestamp()) // seconds * seconds, UTC), until, interval)
