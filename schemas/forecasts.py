"""A forecast of a waiting pod's start, and its record of being right."""

from datetime import datetime
from typing import Final, Literal, NamedTuple

from .events.base import Model, PodRef
from .events.field_types import ClusterName, Moment, Words
from .ids import count_microseconds

MIN_JUDGED: Final = 20
MIN_PERCENT_RIGHT: Final = 80
MAX_JUDGED: Final = 50
"""Number of the latest forecasts that a record counts."""

Basis = Literal["", "workload", "shape"]
"""Holds that an interval follows from: of the holders' workloads, or of pods of their namespaces with as many devices
of the same models; empty without an interval."""
MissingBasis = Literal["", "order", "nodes", "ends", "holds"]
"""Cause of a missing interval; empty with one. order: it is not known to be the first pod in the order. nodes: more
nodes are equally near than are named. ends: no single end is enough. holds: too few recorded holds lasted as long as a
holder has run."""


class StartForecast(Model):
    """Interval in which a pod starts that waits for the end of one of others; or the cause of its absence."""

    cluster: ClusterName
    pod: PodRef
    given_at: Moment
    obstacle: str
    """Code of the obstacle for which the pod waited."""
    missing: MissingBasis = ""
    basis: Basis = ""
    after: Words
    """Pods, as NAMESPACE/NAME: the end of any of them is enough. For the cause ``holds``, those without history."""
    earliest: Moment | None = None
    latest: Moment | None = None

    @property
    def id(self) -> str:
        """Return the document's id."""
        return f"{self.cluster}/{self.pod.uid}/start/{count_microseconds(self.given_at)}"

    def differs_from(self, previous: "StartForecast") -> bool:
        """Tell whether it is news after another one of the same pod."""
        return (self.obstacle, self.missing) != (previous.obstacle, previous.missing)

    def judge(self, started_at: datetime) -> bool | None:
        """Tell whether a start is within the interval; None without one, and for a start before the forecast."""
        if self.earliest is None or self.latest is None or started_at < self.given_at:
            return None
        return self.earliest <= started_at <= self.latest


class ForecastRecord(NamedTuple):
    """Share of forecasts that were right, of the latest ones that pods' starts have judged."""

    right: int
    judged: int

    @property
    def is_proved(self) -> bool:
        return self.judged >= MIN_JUDGED and self.right * 100 >= self.judged * MIN_PERCENT_RIGHT
