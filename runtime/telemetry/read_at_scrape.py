"""Metrics whose values other objects hold: a collector that reads each of them when Prometheus scrapes."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ReadAtScrape(Collector):
    """``gauges`` and ``counters``: name, without ``prefix``, to the help text. Counters get the suffix ``_total``."""

    def __init__(self, prefix: str, gauges: Mapping[str, str], counters: Mapping[str, str]) -> None:
        self._prefix, self._gauges, self._counters = prefix, gauges, counters
        self._sources: dict[str, Callable[[], float]] = {}

    def add(self, name: str, read: Callable[[], float]) -> None:
        """Add the metric ``name``, which exports ``read()``. Raises ``ValueError`` for a name that no list has."""
        if name not in self._gauges and name not in self._counters:
            raise ValueError(f"{self._prefix}{name} is not in the list of metrics")
        self._sources[name] = read

    def collect(self) -> Iterator[Metric]:
        """Yield a gauge or a counter for each name that was added."""
        # In the thread of the scrape: objects may change meanwhile, so `read` must not iterate over a live collection.
        for name, read in self._sources.items():
            if name in self._counters:
                yield CounterMetricFamily(self._prefix + name, self._counters[name], value=read())
            else:
                yield GaugeMetricFamily(self._prefix + name, self._gauges[name], value=read())
