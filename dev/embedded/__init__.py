"""A real Kafka and a real OpenSearch on this machine without Docker, Java or Maven: for the demo, tests and benchmarks.

with embedded.backends() as servers:
    producer = AIOKafkaProducer(bootstrap_servers=servers.bootstrap_servers)
    servers.kafka[0].kill()
    servers.kafka[0].start()

``python -m dev.embedded up`` does the same for people. Imports nothing of the rest of schedulerlog.

backends            Kafka and OpenSearch of one folder, started and stopped together
folder              the same for the command line: servers that keep running after the command
kafka, opensearch   one broker, one node: what to run, and how to see that it is ready
kafka_probe         whether a broker takes a record and gives it back
kafka_storage       the empty data folder of a broker
secured_opensearch  one node of OpenSearch with its security plugin, for tests
server              one server process from start to end, whatever it serves
process             operating system processes, known by process id and start time
parent_death_watch  the script that kills a server when the process that started it dies
plan, state, ports  which servers a folder holds and on which ports; kept in ``state.json``
lock, download      the jars of all servers, their checksums, and how they get into the user's cache
installed           both together: the command line of each server, its jars downloaded
jvm                 the command line of Java
aot_cache           with which servers start in half the CPU
locking             one process at a time in a folder
progress, status    what a person sees
errors              what can go wrong, named for what the caller can do
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
