"""Every metric of a reader, by name and subject."""

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics

from ingest.reading.protocol import Counts


class Metrics:
    """One registry per process that reads, so that two in one process do not count together."""

    def __init__(self, source: str) -> None:
        # ``_created`` series would double the number of series and are of no use here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._source = source
        self._lines = self._create_counter(
            "lines",
            "Lines by outcome: event, noise, unknown; of events in Kubernetes also untrusted.",
            "source",
            "outcome",
        )
        self._events = self._create_counter("events", "Events that the reader emitted.", "source")
        self._attempts = self._create_counter(
            "attempts", "Attempts, by whether the log reports all of them.", "source", "complete"
        )
        self._seen: dict[tuple[str, ...], int] = {}

    def _create_counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(f"schedulerlog_ingest_{name}", description, labels, registry=self.registry)

    def note(self, counts: Counts) -> None:
        """Bring the metrics up to what the reader has counted."""
        for outcome, total in counts.lines.items():
            self._raise(self._lines, total, self._source, outcome)
        self._raise(self._events, counts.events, self._source)
        self._raise(self._attempts, counts.attempts_complete, self._source, "true")
        self._raise(self._attempts, counts.attempts_incomplete, self._source, "false")

    def _raise(self, counter: Counter, total: int, *labels: str) -> None:
        key = (counter._name, *labels)
        # Readers count lines in plain integers; the metrics follow once per batch.
        counter.labels(*labels).inc(total - self._seen.get(key, 0))
        self._seen[key] = total
