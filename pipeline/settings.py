"""What can be set. Every setting is read from the environment variable ``SCHEDULERLOG_`` and its name."""

from collections.abc import Mapping
from socket import gethostname
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX: Final = "SCHEDULERLOG_"


class SettingError(Exception):
    """A setting is missing or wrong; the message names it in one line."""


def servers(said: str) -> str:
    """Raises ``ValueError`` where it is no ``host:port[,host:port…]``."""
    for server in said.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{server.strip()!r} is no HOST:PORT, write for example 127.0.0.1:9092")
    return said


def _url(said: str) -> str:
    if not said.startswith(("http://", "https://")) or len(said.split("://", 1)[1]) == 0:
        raise ValueError(f"{said!r} is no URL, write for example http://127.0.0.1:9200")
    return said.rstrip("/")


def _known_pools(said: str, info: ValidationInfo) -> str:
    """Raises ``ValueError`` for a pool that ``node_pools`` does not make."""
    made = {each.partition("=")[0].strip() for each in str(info.data.get("node_pools", "")).split(",")}
    for each in said.split(","):
        for pool in each.partition("=")[2].split("|"):
            if pool.strip() and pool.strip() not in made:
                raise ValueError(f"{pool.strip()!r} is no pool of {PREFIX}NODE_POOLS, which says the nodes of each")
    return said


class Settings(BaseSettings):
    """Settings of every command of the pipeline."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, use_attribute_docstrings=True, extra="ignore")

    kafka_bootstrap_servers: Annotated[str, AfterValidator(servers)]
    """``host:port[,host:port…]`` of any brokers."""
    opensearch_url: Annotated[str, AfterValidator(_url)]
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


def read(**given: Any) -> Settings:
    """Settings from the environment; ``given`` ones that are not None come first. Raises ``SettingError``."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise SettingError(_line(error.errors()[0])) from None


def _line(error: Mapping[str, Any]) -> str:
    name = f"{PREFIX}{str(error['loc'][0]).upper()}"
    if error["type"] == "missing":
        return f"{name} is not set: {_about(str(error['loc'][0]))}"
    return f"{name}: {error['msg'].removeprefix('Value error, ')}"


def _about(name: str) -> str:
    field = Settings.model_fields.get(name)
    return " ".join((field.description or "").split()) if field else ""
