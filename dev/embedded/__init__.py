"""A real Kafka and a real OpenSearch on this machine without Docker, Java or Maven: for the demo, tests and benchmarks.

with embedded.backends() as servers:
    producer = AIOKafkaProducer(bootstrap_servers=servers.bootstrap_servers)
    servers.kafka[0].kill()
    servers.kafka[0].start()

``python -m dev.embedded up`` does the same for people. Imports nothing of the rest of schedulerlog.

backends            Kafka and OpenSearch of one folder, started and stopped together
folder              the same for the command line: servers that keep running after the command
kafka, opensearch   one broker, one node: its command line and its check of readiness
kafka_probe         check that a broker takes a record and gives it back
kafka_storage       empty data folder of a broker
secured_opensearch  one node of OpenSearch with its security plugin, for tests
server              server process from start to end, whatever it serves
process             operating system processes, identified by process id and start time
parent_death_watch  script that kills a server when the process that started it dies
state, ports        servers of a folder and their ports, kept in ``state.json``
lock, download      jars of all servers, their checksums, and their download into the user's cache
installed           command line of each server, with its jars downloaded
jvm                 command line of Java
aot_cache           cache with which servers start in half the CPU
locking             one process at a time in a folder
progress, status    display for people
errors              errors, named for what the caller can do
control_plane       a real Kubernetes control plane, in the same way
"""

from dev.embedded.backends import Backends, backends
from dev.embedded.errors import (
    BuildError,
    DownloadError,
    EmbeddedError,
    LockError,
    NotRunningError,
    PortTakenError,
    ServerError,
    UnusableSettingError,
)
from dev.embedded.jvm import JvmSettings
from dev.embedded.kafka import KafkaBroker
from dev.embedded.opensearch import OpenSearchNode

__all__ = [
    "Backends",
    "BuildError",
    "DownloadError",
    "EmbeddedError",
    "JvmSettings",
    "KafkaBroker",
    "LockError",
    "NotRunningError",
    "OpenSearchNode",
    "PortTakenError",
    "ServerError",
    "UnusableSettingError",
    "backends",
]
