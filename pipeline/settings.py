"""The settings of the pipeline's processes; process.settings says how they are read."""

from socket import gethostname
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from process.settings import BootstrapServers, EnvironmentSettings, LabelNames, Url
from process.variables import variable


def _known_pools(expected: str, info: ValidationInfo) -> str:
    """Raises ``ValueError`` for a pool that ``node_pools`` does not define."""
    # A misspelt pool has no nodes: placements on the nodes that were meant would be findings.
    defined = {pair.partition("=")[0].strip() for pair in str(info.data.get("node_pools", "")).split(",")}
    for pair in expected.split(","):
        for pool in pair.partition("=")[2].split("|"):
            if pool.strip() and pool.strip() not in defined:
                pools = variable("node_pools")
                raise ValueError(f"{pool.strip()!r} is not a pool of {pools}, which names the nodes of each")
    return expected


class KafkaSettings(EnvironmentSettings):
    """Settings of the commands that need Kafka alone, and of all others."""

    kafka_bootstrap_servers: BootstrapServers
    """Addresses of any of the brokers, ``host:port[,host:port…]``."""

    consumer_group: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "schedulerlog-pipeline"
    """The Kafka consumer group: workers that share it share the partitions."""
    instance_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = Field(default_factory=gethostname)
    """The name of this worker in the group. A worker that restarts under its name gets its partitions back at once.
    Defaults to the host's name; two workers on one host need a name each."""
    session_timeout_seconds: Annotated[float, Field(ge=1, le=300)] = 6.0
    """Seconds without a heartbeat after which a worker's partitions are assigned to others. With 2, another worker
    takes over within 3 seconds of a kill. Brokers refuse less than their group.min.session.timeout.ms, 6 seconds by
    default."""

    incomplete_after_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Seconds to wait for missing records of an attempt; then its summary is written and marked incomplete."""
    store_devices: bool = True
    """Whether records of device verdicts are passed on to the index, besides the summaries."""

    batch_documents: Annotated[int, Field(ge=1)] = 1_000
    """Documents in one bulk request, at most."""
    batch_bytes: Annotated[int, Field(ge=1024)] = 4 * 1024 * 1024
    """Bytes of one bulk request, approximately. A larger document is sent in a request of its own."""
    linger_seconds: Annotated[float, Field(ge=0, le=10)] = 0.003
    """Seconds that the first write of a batch waits for others. Longer means larger batches and older answers."""
    queue_bytes: Annotated[int, Field(ge=1024)] = 10 * 1024 * 1024
    """Bytes of memory for what waits to be written. Reading pauses when they are used up."""
    summary_cache_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    """Bytes of memory for summaries that a later record may complete, or that the pod's next attempt is compared with;
    the others are read back from the topic of attempts."""

    count_seconds: Annotated[float, Field(ge=0, le=30)] = 2.0
    """Seconds between two publications of the counts of minutes."""
    node_pools: Annotated[str, Field(pattern=r"^([^=,]+=[^=,]+(,[^=,]+=[^=,]+)*)?$")] = ""
    """The pools of nodes, by patterns of their names, for trends and audits: ``a100=gpu-a100-*,t4=t4-*``."""
    expected_pools: Annotated[
        str, Field(pattern=r"^([^=,]+=[^=,]*(,[^=,]+=[^=,]*)*)?$"), AfterValidator(_known_pools)
    ] = ""
    """Which pools a namespace may use, by patterns of its name, for the audits: ``team-a=a100|t4,batch-*=t4``. The
    first pattern that matches counts; a namespace that matches none may use every node."""

    max_backoff_seconds: Annotated[float, Field(gt=0)] = 10.0
    """Seconds between attempts to reach a store that is down, at most."""
    stuck_after_seconds: Annotated[float, Field(gt=0)] = 120.0
    """Seconds without progress, although there are records to read, after which a worker ends itself to be restarted.
    Consumers have been seen to stop without an error."""

    retention_days: Annotated[int, Field(ge=0)] = 0
    """Days that ``retention`` keeps every index; 0 keeps each as long as docs/operations.md says (7 to 90 days)."""
    kept_clusters: LabelNames = ()
    """Names of clusters, between commas, whose data ``retention`` never deletes: of old logs that were read under a
    name of their own, for example."""

    replication_factor: Annotated[int, Field(ge=0)] = 0
    """Replicas of the topics that ``provision`` makes; 0 means one on every broker, three at most."""
    index_shards: Annotated[int, Field(ge=1)] = 1
    """Primary shards of each index that is created from now on; docs/operations.md says how many."""
    index_replicas: Annotated[int, Field(ge=0)] = 0
    """Copies of each index besides the first; 0 is right only for a single OpenSearch node."""


class Settings(KafkaSettings):
    """Settings of the commands that read or write the index."""

    opensearch_url: Url
    """Base URL of OpenSearch; it may contain a user and password."""
