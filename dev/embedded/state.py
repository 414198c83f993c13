"""The servers of a folder, kept in ``state.json``: their ports, and process ids with start times."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from dev.embedded.errors import EmbeddedError
from dev.embedded.kafka_storage import generate_id
from dev.embedded.lock import KINDS, ServerKind
from dev.embedded.ports import KAFKA_PORTS, OPENSEARCH_PORTS, find_free_port
from dev.embedded.process import ProcessId

FILE_NAME: Final = "state.json"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One server: ``controller_port`` only of Kafka; ``process`` is the last one started, alive or not."""

    name: str
    kind: ServerKind
    port: int
    controller_port: int | None = None
    process: ProcessId | None = None


@dataclass(frozen=True, slots=True)
class State:
    """All servers of a folder; ``kafka_cluster_id`` must not change while Kafka has data."""

    kafka_cluster_id: str
    servers: tuple[ServerRecord, ...] = ()

    def list_servers(self, kind: ServerKind) -> list[ServerRecord]:
        """List the servers of a kind by name, which for Kafka is the order of node numbers."""
        return sorted((server for server in self.servers if server.kind == kind), key=lambda server: server.name)


def read_state(folder: Path) -> State | None:
    """Read the state; None if no server was ever started here. Raises EmbeddedError for a file that cannot be
    understood."""
    file = folder / FILE_NAME
    try:
        return _parse_state(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddedError(
            f"{file}: cannot be read ({error!r}). Stop the servers of this folder by hand (ps), then delete the folder."
        ) from error


def write_state(folder: Path, state: State) -> None:
    """Replace the file in one step, so that neither a reader nor a kill ever leaves half a file."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{FILE_NAME}.part"
    part.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
    part.replace(folder / FILE_NAME)


def _parse_state(document: Any) -> State:
    servers = tuple(_parse_record(server) for server in document["servers"])
    return State(kafka_cluster_id=str(document["kafka_cluster_id"]), servers=servers)


def _parse_record(document: Any) -> ServerRecord:
    kind = document["kind"]
    if kind not in KINDS:
        raise ValueError(f"unknown kind of server {kind!r}")
    process, controller = document["process"], document["controller_port"]
    return ServerRecord(
        name=str(document["name"]),
        kind=kind,
        port=int(document["port"]),
        controller_port=None if controller is None else int(controller),
        process=None if process is None else ProcessId(int(process["pid"]), str(process["started"])),
    )


def create_records(kind: ServerKind, brokers: int) -> tuple[ServerRecord, ...]:
    """Create records of servers that were never started, on ports that are free now; only Kafka uses ``brokers``."""
    if kind == "opensearch":
        return (ServerRecord("opensearch", kind, find_free_port(OPENSEARCH_PORTS)),)
    ports: list[int] = []
    for _ in range(2 * brokers):
        ports.append(find_free_port(KAFKA_PORTS, besides=ports))
    return tuple(ServerRecord(f"kafka-{node}", kind, ports[2 * node], ports[2 * node + 1]) for node in range(brokers))


def plan_servers(folder: Path, state: State | None, kinds: Sequence[ServerKind], brokers: int) -> State:
    """Plan the servers of the folder: the existing ones, and new ones for missing ``kinds``.

    Raises EmbeddedError if the folder holds the data of another number of brokers.
    """
    # Random, so that a broker does not join another cluster's controller that got one of our ports.
    cluster_id = state.kafka_cluster_id if state else generate_id()
    records = state.servers if state else ()
    for kind in kinds:
        there = [record for record in records if record.kind == kind]
        if kind == "kafka" and there and len(there) != brokers:
            what = f"{folder} holds a Kafka of {len(there)} broker(s), not {brokers}"
            raise EmbeddedError(f"{what}: name another --dir, or delete this one")
        if not there:
            records += create_records(kind, brokers)
    return State(cluster_id, records)
