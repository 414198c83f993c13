"""Decides which servers a folder holds and on which ports; the decision is made once and then kept."""

from collections.abc import Sequence
from pathlib import Path

from dev.embedded.errors import EmbeddedError
from dev.embedded.kafka_storage import generate_id
from dev.embedded.lock import ServerKind
from dev.embedded.ports import KAFKA_PORTS, OPENSEARCH_PORTS, find_free_port
from dev.embedded.state import ServerRecord, State


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
