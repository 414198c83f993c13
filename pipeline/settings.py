"""The settings of the pipeline's processes; process.settings says how they are read."""

from socket import gethostname
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from process.settings import BootstrapServers, EnvironmentSettings, Url
from process.variables import variable


def _known_pools(said: str, info: ValidationInfo) -> str:
    """Raises ``ValueError`` for a pool that ``node_pools`` does not make."""
    made = {each.partition("=")[0].strip() for each in str(info.data.get("node_pools", "")).split(",")}
    for each in said.split(","):
        for pool in each.partition("=")[2].split("|"):
            if pool.strip() and pool.strip() not in made:
                pools = variable("node_pools")
                raise ValueError(f"{pool.strip()!r} is not a pool of {pools}, which names the nodes of each")
    return said


class Settings(EnvironmentSettings):
    """Settings of every command of the pipeline."""

    kafka_bootstrap_servers: BootstrapServers
    """``host:port[,host:port…]`` of any brokers."""
    opensearch_url: Url
    """Base URL of OpenSearch; a user and password may stand in it."""

    consumer_group: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "schedulerlog-pipeline"
    """The Kafka consumer group: workers that share it share the partitions."""
    instance_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = Field(default_factory=gethostname)
    """Names this worker in the group across restarts, so that it gets its partitions back at once. The host's name
    unless set; two workers on one host need one each."""
    session_timeout_seconds: Annotated[float, Field(ge=1, le=300)] = 6.0
    """After this time without a sign of life a worker's partitions go to the others; with 2 they go on within 3 seconds
    of a kill. Brokers refuse less than their group.min.session.timeout.ms, 6 seconds unless set."""

    incomplete_after_seconds: Annotated[float, Field(gt=0)] = 30.0
    """An attempt of which no record has come for so long is told as it is known, and marked incomplete."""
    store_devices: bool = True
    """Store every record of device verdicts in the index too, not only the summaries."""

    batch_documents: Annotated[int, Field(ge=1)] = 1_000
    """The most documents in one bulk request."""
    batch_bytes: Annotated[int, Field(ge=1024)] = 4 * 1024 * 1024
    """About how large one bulk request gets."""
    linger_seconds: Annotated[float, Field(ge=0, le=10)] = 0.015
    """How long the first result of a batch waits for more to come."""
    queue_bytes: Annotated[int, Field(ge=1024)] = 10 * 1024 * 1024
    """How much may wait to be written before reading pauses."""
    remembered_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024
    """Memory for summaries that a bind may still come for; older ones are read back from the index."""

    count_seconds: Annotated[float, Field(ge=0, le=30)] = 2.0
    """How often the counts of minutes are written. Records are acknowledged after that, so a worker that is killed
    reads so much again."""
    node_pools: Annotated[str, Field(pattern=r"^([^=,]+=[^=,]+(,[^=,]+=[^=,]+)*)?$")] = ""
    """Which nodes are a pool, by patterns of their names, for trends and audits: ``a100=gpu-a100-*,t4=t4-*``."""
    expected_pools: Annotated[
        str, Field(pattern=r"^([^=,]+=[^=,]*(,[^=,]+=[^=,]*)*)?$"), AfterValidator(_known_pools)
    ] = ""
    """Which pools a namespace may use, by patterns of its name, for the audits: ``team-a=a100|t4,batch-*=t4``. The
    first pattern that fits counts; a namespace that none fits may use every node."""

    max_backoff_seconds: Annotated[float, Field(gt=0)] = 10.0
    """The longest pause before a store that is down is tried again."""
    stuck_after_seconds: Annotated[float, Field(gt=0)] = 120.0
    """A worker that has records to read and has not got on for so long ends itself, to be started again."""

    retention_days: Annotated[int, Field(ge=0)] = 0
    """How long daily indices are kept by ``retention``; 0 is as long as the contract says for each (30 days)."""

    replication_factor: Annotated[int, Field(ge=0)] = 0
    """Of topics that ``provision`` makes; 0 is one replica on every broker, three at most."""
    index_shards: Annotated[int, Field(ge=1)] = 1
    index_replicas: Annotated[int, Field(ge=0)] = 0
    """Copies of each index beside the first; 0 is right for one OpenSearch node only."""
