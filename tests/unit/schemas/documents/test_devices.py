"""The document of a node state holds the event whole, and is found by its devices."""

import orjson

from schemas.codec.records import Rejected, encode, encode_value
from schemas.documents.devices import build_node_state_document, read_node_state
from schemas.events import NodeStateChanged
from schemas.indices import NODE_STATES
from tests.support.builders.events import STARTED
from tests.support.builders.node_states import a_node_state


def test_a_state_comes_back_from_its_document() -> None:
    state = a_node_state()
    again = read_node_state(orjson.loads(encode_value(build_node_state_document(state, state.observed_at))))
    assert isinstance(again, NodeStateChanged)
    assert encode(again) == encode(state)


def test_every_field_is_declared_in_the_strict_mapping() -> None:
    document = build_node_state_document(a_node_state(), STARTED)
    assert set(document) == set(NODE_STATES.properties)
    assert document["devices"] == [f"GPU-node1-{device}" for device in range(8)]


def test_a_document_without_a_state_is_rejected_with_its_place() -> None:
    outcome = read_node_state({"state": {}})
    assert isinstance(outcome, Rejected)
    assert outcome.place == "document.state.cluster"
