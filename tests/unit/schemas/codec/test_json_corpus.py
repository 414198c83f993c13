"""Every odd JSON document, alone and inside of records: taken or refused as the standard says, never a crash."""

from typing import Any

import pytest

from schemas.codec.records import Rejected, decode_value, encode
from schemas.events import AttemptConcluded, AttemptSummarized, DevicesJudged, Event, NodesJudged, NodeStateChanged
from tests.support.builders.events import a_summary, build_devices_judged, build_nodes_judged
from tests.support.builders.node_states import a_node_state
from tests.support.json_corpus import DOCUMENTS

KINDS: tuple[type[Event], ...] = (DevicesJudged, NodesJudged, AttemptSummarized, AttemptConcluded, NodeStateChanged)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_alone_it_is_no_event_of_ours(kind: type[Event]) -> None:
    for verdict, document in DOCUMENTS:
        outcome = decode_value(kind, document)
        assert isinstance(outcome, Rejected), document
        if verdict == "n":
            assert "not JSON" in outcome.cause, document


@pytest.mark.parametrize(
    "event",
    [build_devices_judged(), build_nodes_judged(), a_summary(), a_node_state()],
    ids=lambda event: type(event).__name__,
)
def test_as_a_field_that_a_later_version_adds_it_is_taken_where_the_standard_says_so(event: Any) -> None:
    encoded = encode(event)
    for verdict, document in DOCUMENTS:
        outcome = decode_value(type(event), encoded.value[:-1] + b',"later":' + document + b"}")
        if verdict == "y":
            assert isinstance(outcome, type(event)), document
            assert encode(outcome) == encoded, document
        if verdict == "n":
            assert isinstance(outcome, Rejected), document
