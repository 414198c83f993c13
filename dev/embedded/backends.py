"""Kafka and OpenSearch together in one folder: started side by side, stopped together.

``backends()`` is for programs: the servers end with the program, even if it is killed. The command line uses the same
``Backends`` without a parent watch (``dev.embedded.folder``).
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from dev.embedded.errors import EmbeddedError, NotRunningError, PortTakenError
from dev.embedded.installed import install_jvms
from dev.embedded.jvm import Jvm, JvmSettings, read_settings
from dev.embedded.kafka import Address, KafkaBroker
from dev.embedded.lock import KINDS, ServerKind
from dev.embedded.opensearch import OpenSearchNode
from dev.embedded.process import ParentWatch
from dev.embedded.progress import create_progress
from dev.embedded.server import JavaServer
from dev.embedded.state import ServerRecord, State, create_records, plan_servers, read_state, write_state

KAFKA_VARIABLE: Final = "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS"
OPENSEARCH_VARIABLE: Final = "SCHEDULERLOG_OPENSEARCH_URL"


# Between choosing a port and listening on it another process may take it; five times in a row is a fault.
PORT_ATTEMPTS: Final = 5


class Backends:
    """The servers of one folder. Without Kafka ``kafka`` is empty; without OpenSearch ``opensearch`` raises."""

    def __init__(
        self, folder: Path, state: State, jvms: dict[ServerKind, Jvm], parent_watch: ParentWatch | None = None
    ) -> None:
        self.folder = folder
        self._cluster_id = state.kafka_cluster_id
        self._jvms = jvms
        self._parent_watch = parent_watch
        # Kafka and OpenSearch start in two threads, and both write the state file.
        self._writing = threading.Lock()
        self.kafka = self._create_brokers(state.list_servers("kafka"))
        self._opensearch = [self._create_opensearch(record) for record in state.list_servers("opensearch")]

    @property
    def servers(self) -> list[JavaServer]:
        return [*self.kafka, *self._opensearch]

    @property
    def opensearch(self) -> OpenSearchNode:
        """The node; raises NotRunningError if this folder has only Kafka."""
        if not self._opensearch:
            raise NotRunningError(f"there is no OpenSearch in {self.folder}: it was started with only Kafka")
        return self._opensearch[0]

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, separated by commas; raises NotRunningError."""
        if not self.kafka:
            raise NotRunningError(f"there is no Kafka in {self.folder}: it was started with only OpenSearch")
        return ",".join(broker.bootstrap_server for broker in self.kafka)

    @property
    def opensearch_url(self) -> str:
        """Base URL; raises NotRunningError."""
        return self.opensearch.url

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which schedulerlog's services find both; raises NotRunningError."""
        return {KAFKA_VARIABLE: self.bootstrap_servers, OPENSEARCH_VARIABLE: self.opensearch_url}

    def start(self, kinds: Sequence[ServerKind] = KINDS) -> None:
        """Start the servers of these kinds that do not run, side by side, and wait until all are ready.

        If another process has taken a port, another port is chosen, as long as no server of that kind runs.
        Raises ServerError after killing what this call started.
        """
        before = [server for server in self.servers if server.is_alive]
        try:
            with ThreadPoolExecutor(len(KINDS)) as threads, self._undone_on_error(before):
                for done in [threads.submit(self._start_kind, kind) for kind in kinds]:
                    done.result()
        except BaseException:
            # Once more: a thread may have started a server after the first round of kills.
            self._kill_besides(before)
            raise

    def stop(self) -> None:
        """Stop all, side by side."""
        for server in self.servers:
            server.ask_to_stop()
        for server in self.servers:
            server.stop()

    def kill(self) -> None:
        """Kill all servers (SIGKILL)."""
        self._kill_besides(())

    def build_state(self) -> State:
        """Build the content of the state file."""
        return State(self._cluster_id, tuple(_to_record(server) for server in self.servers))

    def _start_kind(self, kind: ServerKind) -> None:
        # Clients know the address of a server that runs, so its kind must keep its ports.
        may_move = not any(server.is_alive for server in self._list_servers(kind))
        for attempts_left in reversed(range(PORT_ATTEMPTS)):
            try:
                _run_in_parallel(self._launch, self._list_servers(kind))
                _run_in_parallel(JavaServer.wait_until_ready, self._list_servers(kind))
            except PortTakenError:
                if not (may_move and attempts_left):
                    raise
                self._move_ports(kind)
            else:
                return

    def _launch(self, server: JavaServer) -> None:
        if not server.is_alive:
            server.launch()
            self.remember()

    def _move_ports(self, kind: ServerKind) -> None:
        for server in self._list_servers(kind):
            server.kill()
        records = create_records(kind, len(self._list_servers(kind)))
        if kind == "kafka":
            self.kafka = self._create_brokers(records)
        else:
            self._opensearch = [self._create_opensearch(record) for record in records]

    def remember(self) -> None:
        """Write the state file, so that the next command finds the servers that run."""
        with self._writing:
            write_state(self.folder, self.build_state())

    @contextmanager
    def _undone_on_error(self, before: Sequence[JavaServer]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._kill_besides(before)
            raise

    def _kill_besides(self, spared: Sequence[JavaServer]) -> None:
        for server in self.servers:
            if server not in spared:
                server.kill()

    def _list_servers(self, kind: ServerKind) -> list[JavaServer]:
        return [server for server in self.servers if server.kind == kind]

    def _create_brokers(self, records: Sequence[ServerRecord]) -> list[KafkaBroker]:
        addresses = [Address(node, record.port, record.controller_port or 0) for node, record in enumerate(records)]
        return [
            KafkaBroker(
                self.folder / record.name, addresses, node, self._cluster_id, self._jvms["kafka"], self._parent_watch,
                record.process,
            )
            for node, record in enumerate(records)
        ]  # fmt: skip

    def _create_opensearch(self, record: ServerRecord) -> OpenSearchNode:
        return OpenSearchNode(
            self.folder / record.name, record.port, self._jvms["opensearch"], self._parent_watch, record.process
        )


@contextmanager
def backends(
    folder: Path | None = None,
    brokers: int = 1,
    only: ServerKind | None = None,
    keep_data: bool = False,
    settings: JvmSettings | None = None,
) -> Iterator[Backends]:
    """Servers that run as long as the ``with`` block, and never longer than this process, even if it is killed.

    Without ``keep_data`` they run in a new folder below ``folder`` or the system's temporary folder, which is removed
    at the end; with it they run in ``folder`` itself, on the data that an earlier run left there.

    Raises DownloadError, UnusableSettingError, ServerError.
    """
    jvms = install_jvms(settings or read_settings(os.environ), create_progress(Console(stderr=True)))
    with running(jvms, (only,) if only else KINDS, brokers, folder, keep_data=keep_data) as servers:
        yield servers


@contextmanager
def running(
    jvms: dict[ServerKind, Jvm],
    kinds: Sequence[ServerKind],
    brokers: int = 1,
    folder: Path | None = None,
    *,
    keep_data: bool = False,
) -> Iterator[Backends]:
    """Servers as of ``backends``, on these Java virtual machines. Raises UnusableSettingError, ServerError."""
    with closing(ParentWatch()) as parent_watch, _home(folder, keep_data) as home:
        servers = Backends(home, plan_servers(home, _read_unused_state(home), kinds, brokers), jvms, parent_watch)
        try:
            servers.start(kinds)
            yield servers
        finally:
            # Data that will be deleted need no orderly stop, which takes seconds.
            servers.stop() if keep_data else servers.kill()


@contextmanager
def _home(folder: Path | None, keep_data: bool) -> Iterator[Path]:
    if keep_data:
        yield (folder or Path(".run/embedded")).resolve()
        return
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="schedulerlog-", dir=folder)).resolve()
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _read_unused_state(home: Path) -> State | None:
    """Read the state that an earlier run left; raises EmbeddedError if its servers still run."""
    state = read_state(home)
    # Two brokers on one data folder would damage it.
    alive = [record.name for record in state.servers if record.process and record.process.is_alive()] if state else []
    if alive:
        raise EmbeddedError(f"{home} is in use ({', '.join(alive)} running): stop them, or name another folder")
    return state


def _run_in_parallel(action: Callable[[JavaServer], None], servers: Sequence[JavaServer]) -> None:
    with ThreadPoolExecutor(max(1, len(servers))) as threads:
        for done in [threads.submit(action, server) for server in servers]:
            done.result()


def _to_record(server: JavaServer) -> ServerRecord:
    controller_port = server.addresses[server.node].controller_port if isinstance(server, KafkaBroker) else None
    return ServerRecord(server.name, server.kind, server.port, controller_port, server.process)
