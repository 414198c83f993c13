"""Node states in memory: the one that a verdict refers to, and no other."""

from datetime import timedelta

from api.memory.cluster_devices import RecentStates
from schemas.codec.records import encode
from schemas.events import NodeStateChanged
from tests.support.builders.events import STARTED
from tests.support.builders.node_states import a_node_state


def keep(recent: RecentStates, *states: NodeStateChanged) -> None:
    for state in states:
        recent.put(state, encode(state).value)


def test_a_state_is_found_by_its_id_alone() -> None:
    recent, stored = RecentStates(), a_node_state("node1", 2, revision=7)
    keep(recent, stored)
    states = recent.find([stored.id, a_node_state("node1", 2, revision=8).id])
    assert {name: encode(state).value for name, state in states.items()} == {stored.id: encode(stored).value}


def test_those_that_were_written_first_make_way() -> None:
    states = [a_node_state(f"node{i}", 8, observed_at=STARTED + timedelta(seconds=i)) for i in range(40)]
    recent = RecentStates(max_bytes=20_000)
    keep(recent, *reversed(states))
    left = recent.find(state.id for state in states)
    assert 5 < len(left) < 20
    assert list(left) == [state.id for state in states[-len(left) :]]
