"""The settings of the pipeline's commands, a model each; runtime.settings.settings says how they are read."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo

from runtime import durations
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.names import DEFAULT_CLUSTER
from runtime.settings.node_pools import PoolSettings
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.settings.settings import (
    ClusterName,
    Duration,
    EnvironmentSettings,
    Flag,
    LabelNames,
    ServiceSettings,
    Size,
    format_size,
    parse_size,
)
from runtime.settings.variables import derive_variable
from runtime.telemetry.tracing import TracingSettings

INDEX_GROUP: Final = "schedulerlog-index"
PLACEMENTS_GROUP: Final = "schedulerlog-placements"
_NAME: Final = r"^[A-Za-z0-9._-]{1,200}$"
_DAY: Final = timedelta(days=1)


def _check_pools(expected: str, info: ValidationInfo) -> str:
    """Check that ``node_pools`` defines the pools. Raises ``ValueError``."""
    # A misspelt pool has no nodes: placements on the nodes that were meant would be findings.
    defined = {pair.partition("=")[0].strip() for pair in str(info.data.get("node_pools", "")).split(",")}
    for pair in expected.split(","):
        for pool in pair.partition("=")[2].split("|"):
            if pool.strip() and pool.strip() not in defined:
                pools = derive_variable("node_pools")
                raise ValueError(f"{pool.strip()!r} is not a pool of {pools}, which names the nodes of each")
    return expected


def _check_retention(retention: timedelta) -> timedelta:
    # A bare number means seconds: somebody who means days must not lose all but today's index.
    if timedelta(0) < retention < _DAY:
        raise ValueError("is shorter than a day: write hours, for example 720h for 30 days, or 0")
    return retention


def _read_by_family(parse: Callable[[str], Any]) -> Callable[[object], object]:
    """Make a reader of `FAMILY=VALUE,…`, whose values ``parse`` reads; it raises ``ValueError``."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if wrong := next((name for name, sign, _ in pairs if not sign), None):
            raise ValueError(f"{wrong.strip()!r} is no pair: write FAMILY=VALUE, several between commas")
        return {name.strip(): parse(text.strip()) for name, _, text in pairs}

    return read


def _format_by_family(format_value: Callable[[Any], str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda values: ",".join(f"{name}={format_value(value)}" for name, value in values.items())


def _check_families(values: dict[str, Any]) -> dict[str, Any]:
    # Imported where a family is named: the fields of all indices are no part of other commands.
    from schemas.indices import INDICES

    names = [index.family for index in INDICES]
    if unknown := next((name for name in values if name not in names), None):
        raise ValueError(f"{unknown!r} is no family of indices: write some of {', '.join(names)}, as devices=…")
    return values


def _check_limits(limits: dict[str, int]) -> dict[str, int]:
    from schemas.indices import INDICES

    if family := next((index.family for index in INDICES if index.period == "all" and index.family in limits), None):
        raise ValueError(f"{family} is one index, whose documents expire by their age alone: shorten its time instead")
    return limits


def _check_times(times: dict[str, timedelta]) -> dict[str, timedelta]:
    for name, time in times.items():
        if time < _DAY:
            raise ValueError(f"{name} is shorter than a day: write hours, for example {name}=72h for three days")
    return times


FamilyTimes = Annotated[
    dict[str, timedelta],
    BeforeValidator(_read_by_family(durations.read)),
    AfterValidator(_check_families),
    AfterValidator(_check_times),
    Flag(metavar="FAMILY=DURATION,…", text=_format_by_family(durations.format_go)),
]
FamilySizes = Annotated[
    dict[str, int],
    BeforeValidator(_read_by_family(parse_size)),
    AfterValidator(_check_families),
    AfterValidator(_check_limits),
    Flag(metavar="FAMILY=SIZE,…", text=_format_by_family(format_size)),
]


def derive_events_group(cluster_name: str) -> str:
    """Derive the consumer group of the process that writes events into the cluster."""
    # A group for each cluster: the processes of two clusters would each read a part of the messages.
    return f"schedulerlog-events-{cluster_name}"


class ConsumerSettings(KafkaConnection, ServiceSettings):
    """For processes that share partitions, or a lease, with others of their kind."""

    session_timeout: Annotated[Duration, Field(ge=timedelta(seconds=1), le=timedelta(minutes=5))] = timedelta(seconds=6)
    """Time without a heartbeat after which a process loses its partitions or its lease to others. With 2s, another
    worker takes over within 3 seconds of a kill. Brokers refuse less than their group.min.session.timeout.ms, 6s by
    default."""

    @property
    def session_seconds(self) -> float:
        return self.session_timeout.total_seconds()


class PatientSettings(EnvironmentSettings):
    max_backoff: Annotated[Duration, Field(gt=timedelta(0))] = timedelta(seconds=10)
    """The longest pause between two attempts to reach a store that is down."""

    @property
    def max_backoff_seconds(self) -> float:
        return self.max_backoff.total_seconds()


class WorkerSettings(PoolSettings, PatientSettings, TracingSettings, ConsumerSettings):
    consumer_group: Annotated[str, Field(pattern=_NAME), Flag(metavar="NAME")] = "schedulerlog-pipeline"
    """The Kafka consumer group: workers that share it share the partitions."""
    instance_id: Annotated[str, Field(pattern=_NAME), Flag(metavar="NAME")] = Field(default_factory=gethostname)
    """The name of this worker in the group. A worker that restarts under its name gets its partitions back at once.
    Defaults to the host's name; two workers on one host need a name each."""

    incomplete_after: Annotated[Duration, Field(gt=timedelta(0))] = timedelta(seconds=30)
    """Time to wait for missing records of an attempt; then its summary is written and marked incomplete."""
    store_devices: bool = True
    """Pass records of device verdicts on to the index, besides the summaries."""

    linger: Annotated[Duration, Field(ge=timedelta(0), le=timedelta(seconds=10))] = timedelta(milliseconds=3)
    """Time that the first write of a batch waits for others. Longer means larger batches and older answers."""
    queue_size: Annotated[Size, Field(ge=1024)] = 10 * 1024**2
    """Memory for what waits to be written. Reading pauses when it is used up."""
    summary_cache_size: Annotated[Size, Field(ge=0)] = 64 * 1024**2
    """Memory for summaries that a later record may complete, or that the pod's next attempt is compared with; the
    others are read back from the topic of attempts."""

    count_interval: Annotated[Duration, Field(ge=timedelta(0), le=timedelta(seconds=30))] = timedelta(seconds=2)
    """Time between two publications of the counts of minutes."""
    stuck_after: Annotated[Duration, Field(gt=timedelta(0))] = timedelta(minutes=2)
    """Time without progress, although there are records to read, after which a worker ends itself to be restarted.
    Consumers have been seen to stop without an error."""


class IndexSettings(OpenSearchConnection, PatientSettings, TracingSettings, ConsumerSettings):
    index_linger: Annotated[Duration, Field(ge=timedelta(0), le=timedelta(seconds=30))] = timedelta(milliseconds=50)
    """Time that the first record of a batch waits for others before it is written into the index. Longer costs
    OpenSearch less; answers about the latest pods come from memory and do not wait."""
    batch_documents: Annotated[int, Field(ge=1), Flag(metavar="NUMBER")] = 1_000
    """Documents in one bulk request, at most."""
    batch_size: Annotated[Size, Field(ge=1024)] = 4 * 1024**2
    """The size of one bulk request, approximately. A larger document is sent in a request of its own."""


class PlacementsSettings(OpenSearchConnection, PoolSettings, ConsumerSettings):
    expected_pools: Annotated[
        str,
        Field(pattern=r"^([^=,]+=[^=,]*(,[^=,]+=[^=,]*)*)?$"),
        AfterValidator(_check_pools),
        Flag(metavar="NAMESPACE=POOL|POOL,…"),
    ] = ""
    """Pools that a namespace may use, by patterns of its name, for the audits: ``team-a=a100|t4,batch-*=t4``. The
    first pattern that matches counts; a namespace that matches none may use every node."""


class AlertsSettings(ConsumerSettings):
    """Settings of the process of alerts; its rules are a file."""


class AlertmanagerSettings(KafkaConnection, ServiceSettings):
    """Settings of the bridge to Alertmanager."""


class NotifySettings(ServiceSettings):
    """Settings of the process of messages to people."""

    cluster_name: Annotated[ClusterName, Flag(metavar="NAME")] = DEFAULT_CLUSTER
    """The name of the Kubernetes cluster, where several share Kafka and OpenSearch."""
    notify_targets: Annotated[Path | None, Flag(("--targets", "--notify-targets"), metavar="FILE")] = None
    """File of targets, as docs/notifications.md describes. `all` sends messages only where it exists."""
    notify_page_url: Annotated[str, Flag(("--page-url", "--notify-page-url"), metavar="URL")] = ""
    """The API's address for people, for links in messages."""
    notify_settle: Annotated[
        Duration, Field(ge=timedelta(0)), Flag(("--settle", "--notify-settle"), metavar="DURATION")
    ] = timedelta(seconds=30)
    """Time that news has to last until it is sent."""
    notify_memory_file: Annotated[Path | None, Flag(("--memory-file", "--notify-memory-file"), metavar="FILE")] = None
    """File of what was sent; default: the ConfigMap schedulerlog-notify."""
    notify_api_token: Annotated[
        SecretStr | None, Flag(("--api-token-file", "--notify-api-token-file"), metavar="FILE")
    ] = None
    """Bearer token for the API, which may list all pods; needed where the API checks its callers."""


class EventsSettings(KafkaConnection, ServiceSettings):
    cluster_name: Annotated[ClusterName, Flag(metavar="NAME")] = DEFAULT_CLUSTER
    """The name of the Kubernetes cluster, where several share Kafka and OpenSearch."""


class RetentionSettings(OpenSearchConnection):
    retention: Annotated[Duration, AfterValidator(_check_retention)] = timedelta(0)
    """Time for which `retention` keeps every index, in whole days (720h: 30 days); 0 keeps each as long as
    docs/operations.md says (7 to 90 days)."""
    retention_by_family: FamilyTimes = Field(default_factory=dict)
    """Times of single families of indices, in place of SCHEDULERLOG_RETENTION: `devices=72h,attempts=336h`."""
    retention_sizes: FamilySizes = Field(default_factory=dict)
    """Most bytes of single families on the disks, replicas included: `devices=200Gi,attempts=500Gi`. Above it
    `retention` deletes their oldest days first, never the current one."""
    kept_clusters: Annotated[LabelNames, Flag(metavar="NAME,…", text=",".join)] = ()
    """Names of clusters, between commas, whose data `retention` never deletes: of old logs that were read under a
    name of their own, for example."""


class TemplateSettings(OpenSearchConnection):
    index_shards: Annotated[int, Field(ge=1), Flag(metavar="NUMBER")] = 1
    """Primary shards of each index that is created from now on; docs/sizing.md says how many."""
    index_replicas: Annotated[int, Field(ge=0), Flag(metavar="NUMBER")] = 0
    """Copies of each index besides the first; 0 is right only for a single OpenSearch node."""


class ProvisionSettings(TemplateSettings, KafkaConnection):
    replication_factor: Annotated[int, Field(ge=0), Flag(metavar="NUMBER")] = 0
    """Replicas of the topics that `provision` makes; 0 means one on every broker, three at most."""
    topic_partitions: Annotated[int, Field(ge=0), Flag(metavar="NUMBER")] = 0
    """Partitions of each topic that is divided, at most, where `provision` makes it; 0 means 12. As many workers can
    share them; more can be added later, none taken away."""
