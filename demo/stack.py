"""Kafka, OpenSearch and the three services, as processes of their own, on free ports.

The demo, the end-to-end tests and the benchmarks all run on this.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import embedded
from demo.cluster_file import ClusterFile
from demo.kube_scheduler import KubeScheduler
from demo.processes import Processes, free_ports
from demo.reader import Reader

SERVICES = ("scheduler", "worker", "api")
FURTHER = ("placements",)
"""What answers beyond schedulerlog need; not started by itself."""


@dataclass(frozen=True, slots=True)
class Stack:
    folder: Path
    cluster: ClusterFile
    backends: embedded.Backends
    processes: Processes
    ports: dict[str, str]

    def url(self, service: str) -> str:
        return f"http://127.0.0.1:{self.ports[service]}"

    @property
    def kube_scheduler(self) -> KubeScheduler:
        return KubeScheduler(self.url("scheduler"))

    @property
    def reader(self) -> Reader:
        return Reader(self.url("api"), self.backends.bootstrap_servers)

    def see_cluster(self) -> None:
        """Return when the scheduler has applied the cluster file as it is now."""
        self.cluster.wait_until_seen(self.url("scheduler") + "/metrics")

    def start(self, service: str) -> None:
        self.processes.start(service, *_command(self, service))

    def wait_ready(self, *services: str) -> None:
        for service in services:
            self.processes.wait_ready(service, f"{self.url(service)}/readyz")


def _command(stack: Stack, service: str) -> list[str]:
    port = stack.ports[service]
    cluster, spool = str(stack.cluster.path), str(stack.folder / "spool")
    commands = {
        "scheduler": ["scheduler", "serve", "--cluster", cluster, "--port", port, "--spool", spool, "--insecure-http"],
        "worker": ["pipeline", "worker", "--metrics-port", port],
        "api": ["api", "serve", "--port", port],
        "placements": ["pipeline", "placements", "--metrics-port", port],
    }
    return commands[service]


@contextmanager
def stack(folder: Path, cluster_source: Path, **environment: str) -> Iterator[Stack]:
    """Everything, ready to be asked; all of it ends with this context.

    ``folder`` holds data, logs and the working copy of the cluster file; ``environment`` adds settings to the services.
    """
    cluster = ClusterFile(cluster_source, folder / "cluster.yaml")
    with provisioned(folder, **environment) as (backends, processes):
        whole = Stack(folder, cluster, backends, processes, free_ports(*SERVICES, *FURTHER))
        for service in SERVICES:
            whole.start(service)
        whole.wait_ready(*SERVICES)
        yield whole


@contextmanager
def provisioned(folder: Path, **environment: str) -> Iterator[tuple[embedded.Backends, Processes]]:
    """Fresh servers with topics and templates, and processes that know their addresses."""
    with (
        embedded.backends(folder / "backends") as backends,
        Processes(folder / "logs", backends.environment | environment) as processes,
    ):
        processes.run("provision", "pipeline", "provision")
        yield backends, processes
