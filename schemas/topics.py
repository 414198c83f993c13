"""The Kafka topics: what travels on each, by which key, how many partitions, kept for how long."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from .events import (
    AlertChanged,
    AttemptConcluded,
    AttemptCounted,
    AttemptRepeated,
    AttemptSummarized,
    AttemptUnchanged,
    BindConcluded,
    DetailDropped,
    DevicesJudged,
    Event,
    FindingReported,
    MessagesEmitted,
    NodeChecked,
    NodeObserved,
    NodeRegistered,
    NodesJudged,
    NodeStateChanged,
    PodHistoryChanged,
    PodObserved,
    SchedulerObserved,
    TrendsCounted,
    WorkloadObserved,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """``key`` is in words; the code of it is ``Event.key``."""

    name: str
    description: str
    key: str
    events: tuple[type[Event], ...]
    # Divides evenly among 1, 2, 3, 4, 6 or 12 workers.
    partitions: int = 12
    retention: timedelta = timedelta(days=7)
    # Records stay below 64 KiB (``records.MAX_VALUE_BYTES``), but the limit holds for a producer's whole batch.
    max_message_bytes: int = 1024 * 1024
    compacted_after: timedelta | None = None
    """All records of a key but its latest may be deleted after this time; None keeps all of them."""
    segment_bytes: int | None = None
    """Size of the files that the broker compacts: it never compacts the one that it is writing to. None: its own size,
    usually a GiB."""
    partitioned_as: str = ""
    """Another topic: this one has as many partitions, and what is made of a record lies in the same one."""


DECISIONS: Final = Topic(
    name="schedulerlog.decisions",
    description="Every decision of schedulers about pods, in order per pod",
    key="cluster/namespace/name of the pod",
    events=(
        DevicesJudged,
        NodesJudged,
        AttemptConcluded,
        AttemptUnchanged,
        BindConcluded,
        DetailDropped,
        FindingReported,
    ),
)
PODS: Final = Topic(
    name="schedulerlog.pods",
    description="Observations of pods and their owners: phase, node, conditions, devices, problems, deletion",
    key="cluster/namespace/name of the pod; cluster/namespace/kind/name of a workload",
    events=(PodObserved, WorkloadObserved),
)
SCHEDULERS: Final = Topic(
    name="schedulerlog.schedulers",
    description="Version and settings of each scheduler, when it starts and when they change",
    key="cluster/scheduler/instance",
    events=(SchedulerObserved,),
    partitions=1,
    retention=timedelta(days=30),
)
NODES: Final = Topic(
    name="schedulerlog.nodes",
    description="State that nodes report: registrations with handshakes, capacity, conditions",
    key="cluster/name of the node",
    events=(NodeRegistered, NodeObserved, NodeChecked),
)
NODE_STATES: Final = Topic(
    name="schedulerlog.node-states",
    description="The devices of each node and what is in use of them, by revision: what verdicts refer to",
    key="cluster/name of the node",
    events=(NodeStateChanged,),
    # Every state is written again once a day, so that the latest of every node outlives the retention; a node that is
    # gone does not. A consumer that is a day behind still finds every revision.
    compacted_after=timedelta(days=1),
)
ATTEMPTS: Final = Topic(
    name="schedulerlog.attempts",
    description="One whole summary per attempt (in parts above 64 KiB), published again when more is known; of a "
    "retry that ended as the one before, only what differs",
    key="cluster/namespace/name of the pod",
    events=(AttemptSummarized, AttemptRepeated),
)
DEVICE_VERDICTS: Final = Topic(
    name="schedulerlog.device-verdicts",
    description="The verdicts device by device of every attempt that does not repeat another, as they were published",
    key="cluster/namespace/name of the pod",
    events=(DevicesJudged,),
    # For the index, which has them for a week: other readers have the decisions.
    retention=timedelta(days=1),
    # A record at the limit of the decisions may take more here: the worker's client compresses it in its own way.
    max_message_bytes=2 * 1024 * 1024,
)
POD_HISTORIES: Final = Topic(
    name="schedulerlog.pod-histories",
    description="The latest attempts of each pod: what the pipeline compares the pod's next one with",
    key="cluster/namespace/name of the pod/scheduler",
    events=(PodHistoryChanged,),
    # Every process that gets a partition reads all of it, so it is kept as short as it can be. A pod that has not been
    # tried for a day begins a new episode.
    retention=timedelta(days=1),
    compacted_after=timedelta(minutes=1),
    # What is not compacted yet is read too: so at most a few thousand records of each partition.
    segment_bytes=4 * 1024 * 1024,
    partitioned_as=DECISIONS.name,
)
ATTEMPT_COUNTS: Final = Topic(
    name="schedulerlog.attempt-counts",
    description="Counts that each attempt adds to its minute",
    key="cluster/namespace/name of the pod",
    events=(AttemptCounted,),
    retention=timedelta(days=1),
    partitioned_as=DECISIONS.name,
)
MESSAGES: Final = Topic(
    name="schedulerlog.messages",
    description="The event texts that people see in kubectl describe",
    key="cluster/namespace/name of the pod",
    events=(MessagesEmitted,),
)
FINDINGS: Final = Topic(
    name="schedulerlog.findings",
    description="Attempts and placements that contradict the state of the cluster, with the numbers that prove it",
    key="cluster/namespace/name of the pod",
    events=(FindingReported,),
)
ALERTS: Final = Topic(
    name="schedulerlog.alerts",
    description="Alerts by rules: firing and resolved",
    key="fingerprint of the alert",
    events=(AlertChanged,),
    # One partition keeps all alerts in order for a reader that sees them fire and end; there are few.
    partitions=1,
)
TRENDS: Final = Topic(
    name="schedulerlog.trends",
    description="Counts of each minute by namespace, result, reason, pool, model, workload and queue",
    key="cluster/partition of the decisions that was counted",
    events=(TrendsCounted,),
)
DEAD_LETTERS: Final = Topic(
    name="schedulerlog.dead-letters",
    description="Records that could not be processed, byte for byte, with their origin and the cause in the headers",
    key="the key of the record",
    events=(),
    partitions=1,
    # People have to find, understand and replay them: longer than the seven days of the topics they came from.
    retention=timedelta(days=30),
    # A dead letter is the record's own bytes plus headers (decision 0005): a record at the limit of its own topic would
    # not fit the same limit here.
    max_message_bytes=16 * 1024 * 1024,
)

CLOCK: Final = Topic(
    name="schedulerlog.clock",
    description="A record a minute of each process that judges times: by its timestamp the process compares its own "
    "clock with the broker's",
    key="the word probe",
    events=(),
    partitions=1,
    retention=timedelta(days=1),
)

RAW_LOGS: Final = Topic(
    name="schedulerlog.raw-logs",
    description="Lines of schedulers' logs as Fluent Bit, Vector or the OpenTelemetry Collector ship them",
    key="namespace/pod/container, so that a log stays in order",
    events=(),
    # Raw lines are read once; the decisions made from them are kept for seven days. A log at -v=5 is 50 MiB per filter
    # call of 5,000 nodes.
    retention=timedelta(days=1),
)

TOPICS: Final = (
    DECISIONS,
    PODS,
    NODES,
    NODE_STATES,
    SCHEDULERS,
    ATTEMPTS,
    MESSAGES,
    FINDINGS,
    DEVICE_VERDICTS,
    POD_HISTORIES,
    ATTEMPT_COUNTS,
    TRENDS,
    ALERTS,
    RAW_LOGS,
    CLOCK,
    DEAD_LETTERS,
)

# Headers rather than a JSON envelope, so that replaying is sending the value again (decision 0005).
DEAD_LETTER_HEADERS: Final = {
    "dead_letter_topic": "the topic the record was read from",
    "dead_letter_partition": "its partition",
    "dead_letter_offset": "its offset",
    "dead_letter_cause": "why it could not be processed, with the place in the record",
    "dead_letter_at": "when it was dead-lettered (RFC 3339)",
    "dead_letter_cut": "what was cut off because it was too long for this topic; empty where nothing was",
}
"""Headers that a dead letter carries in front of the ones it came with."""
