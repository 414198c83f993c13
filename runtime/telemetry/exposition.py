"""Answer of a process to a scrape: its own metrics, those of every process, in the requested format."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from runtime.cli.installation import VERSION

BUILD_INFO: Final = "schedulerlog_build_info"


MoreText = Callable[[], str]
"""Further metrics as text, which both formats share: gauges without exemplars."""
_END: Final = b"# EOF\n"


def encode_metrics(registry: CollectorRegistry, accept: str, more: Sequence[MoreText] = ()) -> tuple[str, bytes]:
    """Encode the metrics as content type and body: OpenMetrics where ``accept`` asks for it, else Prometheus' text."""
    encode, content_type = choose_encoder(accept)
    body = encode(registry)
    if not more:
        return content_type, body
    further = "".join(text() for text in more).encode()
    end = _END if body.endswith(_END) else b""
    return content_type, body.removesuffix(_END) + further + end


def with_process(registry: CollectorRegistry) -> CollectorRegistry:
    """Return the metrics of ``registry``, with those of the process itself: CPU, memory, files, version."""
    # A registry of its own: the process's are global, and two services may share one process, as in tests.
    registry_with_process = CollectorRegistry()
    for collector in (_Registered(registry), _BuildInfo()):
        registry_with_process.register(collector)
    ProcessCollector(registry=registry_with_process)
    PlatformCollector(registry=registry_with_process)
    GCCollector(registry=registry_with_process)
    return registry_with_process


class _Registered(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        return self._registry.collect()


class _BuildInfo(Collector):
    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(BUILD_INFO, "1; the label is the version of this program.", labels=["version"])
        family.add_metric([VERSION], 1)
        yield family


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
