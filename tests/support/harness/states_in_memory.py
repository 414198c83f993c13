"""The states of a cluster's nodes as a reader of Kafka gets them, without a spool."""

from collections.abc import Iterable

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.events.state_builder import Life, StateBuilder
from schemas.codec.records import decode, encode
from schemas.events import Event, NodeStateChanged
from tests.support.builders.kube_objects import STARTED

LIFE = Life(Identity("default", "hami-scheduler"), 1_795_230_000_000_000)


def read_back(events: Iterable[Event]) -> list[Event]:
    """Read the events back, encoded and decoded."""
    records = map(encode, events)
    decoded = [decode(record.value, record.headers) for record in records]
    assert all(isinstance(event, Event) for event in decoded), decoded
    return [event for event in decoded if isinstance(event, Event)]


def build_states(columns: ClusterColumns, life: Life = LIFE) -> list[NodeStateChanged]:
    """Build the state of every registered node, in the order of `columns.node_names`."""
    states = StateBuilder(life, columns).build_states(columns.look_up_ids(columns.node_names), STARTED)
    return [event for event in read_back(states) if isinstance(event, NodeStateChanged)]
