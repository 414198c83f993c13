"""A real Kafka and a real OpenSearch on this machine without Docker, Java or Maven: for the demo, tests and benchmarks.

A real Kubernetes control plane as well: ``embedded.control_plane``.

with embedded.backends() as servers:
    producer = AIOKafkaProducer(bootstrap_servers=servers.bootstrap_servers)
    servers.kafka[0].kill()
    servers.kafka[0].start()

``python -m embedded up`` does the same for people. Knows nothing of the rest of schedulerlog.
"""

from embedded.backends import Backends, backends
from embedded.errors import (
    BuildError,
    DownloadError,
    EmbeddedError,
    LockError,
    NotRunningError,
    PortTakenError,
    ServerError,
    SettingError,
)
from embedded.jvm import JvmSettings
from embedded.kafka import Kafka
from embedded.opensearch import OpenSearch

__all__ = [
    "Backends",
    "BuildError",
    "DownloadError",
    "EmbeddedError",
    "JvmSettings",
    "Kafka",
    "LockError",
    "NotRunningError",
    "OpenSearch",
    "PortTakenError",
    "ServerError",
    "SettingError",
    "backends",
]
