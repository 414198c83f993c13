"""Destinations of the scheduler's records: events, metrics, HAMi's log, the journal of binds, spans."""

from dataclasses import dataclass, field

from engine.fit.events.event_builder import Circumstances
from engine.fit.judge.request.pod_annotations import select_constraints
from engine.hami.go_values import to_mapping
from engine.hami.vendors import Vendors
from runtime.kubernetes.pod_description import describe_pod
from runtime.telemetry.spans import NO_TRACING, Tracing
from scheduler.bind.bind_journal import BindJournal
from scheduler.hami_compat.klog.writer import Klog, NoKlog
from scheduler.metrics import Metrics
from scheduler.publish.spool_writer import SpoolWriter
from schemas.json_types import Json


@dataclass(frozen=True, slots=True)
class Records:
    """Destinations of the scheduler's records, and the circumstances that it adds to each conclusion.

    settings_digest: of its settings in force. pod_labels: the labels of pods that are recorded. tracing: makes a span
    of each call about a pod with devices.
    """

    events: SpoolWriter
    metrics: Metrics
    klog: Klog = field(default_factory=NoKlog)
    binds: BindJournal = field(default_factory=lambda: BindJournal(None))
    settings_digest: str = ""
    pod_labels: tuple[str, ...] = ()
    tracing: Tracing = NO_TRACING

    def describe_circumstances(self, pod: Json, vendors: Vendors) -> Circumstances:
        constraints = select_constraints(to_mapping(to_mapping(pod.get("metadata")).get("annotations")), vendors)
        return Circumstances(describe_pod(pod, self.pod_labels), self.settings_digest, constraints)
