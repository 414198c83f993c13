"""Kafka, OpenSearch and the services, each in its own process, on free ports.

The demo, the end-to-end tests and the benchmarks use it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dev import embedded
from dev.demo.api_server import SimulatedApiServer, serving
from dev.demo.cluster_file import ClusterFile
from dev.demo.kube_scheduler import SimulatedKubeScheduler
from dev.demo.processes import Processes, find_free_ports
from dev.demo.reader import Reader

SEPARATE_SERVICES = ("scheduler", "worker", "index", "api")
TOGETHER = ("scheduler", "all")
"""The scheduler, and the other services as one process."""
CreateProcesses: TypeAlias = Callable[[Path, dict[str, str]], Processes]
"""``Processes``, or another way to start them, from the folder of their logs and their environment."""
OPTIONAL_SERVICES = ("placements", "alerts", "events", "kube-events")
"""They have ports, but are started only on demand."""
OTHER_PORTS = ("api", "hami-metrics")
"""Ports of services that have more than one."""


@dataclass(frozen=True, slots=True)
class Stack:
    """All that runs, with its addresses and clients."""

    folder: Path
    cluster: ClusterFile
    backends: embedded.Backends
    processes: Processes
    ports: dict[str, str]
    api_server: SimulatedApiServer
    authority: Path | None = None
    """The authority of the API's certificate; without one it speaks plain HTTP."""
    api_reads_objects: bool = False
    """True if the API as a process of its own reads the simulated API server; as a part of ``all`` it always does."""

    @property
    def kubeconfig(self) -> Path:
        """The file that names the simulated API server."""
        return self.folder / "kubeconfig"

    def build_url(self, service: str) -> str:
        scheme = "https" if service == "api" and self.authority else "http"
        return f"{scheme}://127.0.0.1:{self.ports[service]}"

    @property
    def kube_scheduler(self) -> SimulatedKubeScheduler:
        return SimulatedKubeScheduler(
            self.build_url("scheduler"), self.api_server, self.build_url("hami-metrics") + "/metrics"
        )

    @property
    def reader(self) -> Reader:
        return Reader(self.build_url("api"), self.backends.bootstrap_servers, self.authority)

    def wait_until_cluster_applied(self) -> None:
        """Return when the scheduler has applied the present content of the cluster file."""
        self.cluster.wait_until_applied(self.build_url("scheduler") + "/metrics")

    def start(self, service: str) -> None:
        self.processes.start(service, *_build_command(self, service), **self._build_certificate_settings(service))

    def _build_certificate_settings(self, service: str) -> dict[str, str]:
        """Build the settings that name the certificate, for a service that has one."""
        if service not in ("api", "all") or self.authority is None:
            return {}
        folder = self.authority.parent
        return {
            "SCHEDULERLOG_API_CERT_FILE": str(folder / "tls.crt"),
            "SCHEDULERLOG_API_KEY_FILE": str(folder / "tls.key"),
        }

    def wait_ready(self, *services: str) -> None:
        for service in services:
            authority = self.authority if service == "api" else None
            self.processes.wait_ready(service, f"{self.build_url(service)}/readyz", authority=authority)


def _build_command(stack: Stack, service: str) -> list[str]:
    port = stack.ports[service]
    cluster, spool, kubeconfig = str(stack.cluster.path), str(stack.folder / "spool"), str(stack.kubeconfig)
    commands = {
        "scheduler": [
            "scheduler",
            "serve",
            "--cluster",
            cluster,
            "--listen",
            port,
            "--spool",
            spool,
            "--metrics-bind-address",
            f"127.0.0.1:{stack.ports['hami-metrics']}",
            "--insecure-http",
        ],
        "worker": ["pipeline", "worker", "--metrics-address", port],
        "index": ["pipeline", "index", "--metrics-address", port],
        "api": ["api", "serve", "--listen", port, *(["--kubeconfig", kubeconfig] if stack.api_reads_objects else [])],
        "kube-events": ["ingest", "kube-events", "--kubeconfig", kubeconfig, "--metrics-address", port],
        "placements": ["pipeline", "placements", "--metrics-address", port],
        "alerts": ["pipeline", "alerts", "--metrics-address", port],
        "events": ["pipeline", "events", "--kubeconfig", kubeconfig, "--metrics-address", port],
        "all": [
            "all",
            "--no-provision",
            "--kubeconfig",
            kubeconfig,
            "--metrics-address",
            port,
            "--listen",
            stack.ports["api"],
            "--events-of",
            "hami-scheduler",
        ],
    }
    return commands[service]


@contextmanager
def stack(
    folder: Path,
    cluster_source: Path,
    servers: AbstractContextManager[embedded.Backends] | None = None,
    create_processes: CreateProcesses = Processes,
    /,
    *,
    services: Sequence[str] = SEPARATE_SERVICES,
    has_certificate: bool = False,
    api_reads_objects: bool = False,
    **environment: str,
) -> Iterator[Stack]:
    """Start everything and wait until it is ready; all of it ends with this context.

    ``folder`` gets data, logs and the working copy of the cluster file; ``environment`` adds settings to the services.
    ``api_reads_objects``: see ``Stack``. ``has_certificate``: the API gets one, by an authority of its own.
    ``servers``: empty ones in place of new ones.
    """
    cluster = ClusterFile(cluster_source, folder / "cluster.yaml")
    api_server = SimulatedApiServer(cluster)
    with provisioned(folder, servers, create_processes, **environment) as (backends, processes):
        ports = find_free_ports(*{*services, *OTHER_PORTS, *OPTIONAL_SERVICES})
        authority = folder / "tls" / "ca.crt" if has_certificate else None
        if authority:
            names = ("--name", "localhost", "--name", "127.0.0.1")
            processes.run("certificate", "api", "certificate", "--folder", str(authority.parent), *names)
        running = Stack(folder, cluster, backends, processes, ports, api_server, authority, api_reads_objects)
        with serving(api_server, running.kubeconfig):
            for service in services:
                running.start(service)
            running.wait_ready(*services)
            yield running


@contextmanager
def provisioned(
    folder: Path,
    servers: AbstractContextManager[embedded.Backends] | None = None,
    create_processes: CreateProcesses = Processes,
    /,
    **environment: str,
) -> Iterator[tuple[embedded.Backends, Processes]]:
    """New servers, or ``servers``, with topics and index templates, and processes whose environment has their
    addresses."""
    with (
        servers or embedded.backends(folder / "backends") as backends,
        create_processes(folder / "logs", backends.environment | environment) as processes,
    ):
        processes.run("provision", "pipeline", "provision")
        yield backends, processes
