"""Inputs of the conditions from a record: its cluster and scheduler, and who published it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from pipeline.alerts.inputs import AlertInput, DeadLettered, DecisionArrival, SchedulerActivity, decode_inputs
from schemas.codec.records import encode
from schemas.events import AttemptConcluded, BindConcluded, Event, NodeChecked
from schemas.topics import DEAD_LETTERS, DECISIONS, MESSAGES, NODES
from tests.support.builders.alert_inputs import a_bind, a_check, to_time
from tests.support.builders.attempts import an_attempt
from tests.support.builders.messages import a_message, emit


class Record(NamedTuple):
    topic: str
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    key: bytes | None = None
    timestamp: int = int(to_time(0).timestamp() * 1000)


def decode_event(topic: str, event: Event) -> list[AlertInput]:
    record = encode(event)
    return decode_inputs(Record(topic, record.value, record.headers))


def a_conclusion(**fields: Any) -> AttemptConcluded:
    *_, event = an_attempt({"node1": [["NumaNotFit"]]}, cluster="east", scheduler="a/b", **fields)
    assert isinstance(event, AttemptConcluded)
    return event.model_copy(update={"started_at": to_time(-1), "ended_at": to_time(-0.5)})


def test_a_decision_shows_that_its_scheduler_is_alive_and_how_late_it_came() -> None:
    assert decode_event(DECISIONS.name, a_conclusion()) == [
        SchedulerActivity("east", "a/b", to_time(0)),
        DecisionArrival("east", "a/b", to_time(0), 30),
    ]


def test_what_was_read_elsewhere_names_its_reader_and_says_nothing_of_a_spool() -> None:
    assert decode_event(DECISIONS.name, a_conclusion(reader="kube-events")) == [
        SchedulerActivity("east", "a/b", to_time(0), "kube-events")
    ]


def test_a_bind_is_a_sign_of_life_too() -> None:
    alive, bind = decode_event(DECISIONS.name, a_bind(0))
    assert alive == SchedulerActivity("default", "hami-scheduler", to_time(0))
    assert isinstance(bind, BindConcluded)


@pytest.mark.parametrize(("scheduler", "alive"), [("hami-scheduler", 1), ("", 0)])
def test_a_check_is_a_sign_of_life_of_the_scheduler_that_made_it(scheduler: str, alive: int) -> None:
    inputs = decode_event(NODES.name, a_check(0).model_copy(update={"scheduler": scheduler}))
    assert [isinstance(item, NodeChecked) for item in inputs] == [False] * alive + [True]


def test_each_line_of_a_record_of_messages_is_an_input() -> None:
    lines = [a_message(code="NumaNotFit"), a_message(code="", text="no available node, 3 nodes do not meet")]
    messages = emit(*lines).model_copy(update={"reported_at": to_time(0)})
    assert decode_event(MESSAGES.name, messages) == [line._replace(reported_at=to_time(0)) for line in lines]


def test_records_of_devices_and_nodes_are_not_decoded() -> None:
    for event in an_attempt({"node1": [["NumaNotFit"]]})[:-1]:
        assert decode_event(DECISIONS.name, event) == []


def test_a_dead_letter_names_the_topic_it_comes_from() -> None:
    headers = [("dead_letter_topic", DECISIONS.name.encode())]
    assert decode_inputs(Record(DEAD_LETTERS.name, b"{", headers)) == [DeadLettered(DECISIONS.name, to_time(0))]


@pytest.mark.parametrize(
    ("topic", "source", "key", "cluster"),
    [
        ("schedulerlog.decisions", "/clusters/east/schedulers/hami", None, "east"),
        ("schedulerlog.nodes", "/clusters/east", b"west/node1", "east"),
        ("schedulerlog.attempts", "/pipeline", b"east/llm/a", "east"),
        ("schedulerlog.attempts", "/pipeline", b"\xff\x00/a", ""),
        ("schedulerlog.decisions", "", None, ""),
        ("schedulerlog.raw-logs", "", b"llm/a/main", ""),
    ],
)
def test_a_dead_letter_names_the_cluster_that_its_record_names(
    topic: str, source: str, key: bytes | None, cluster: str
) -> None:
    headers = [("dead_letter_topic", topic.encode()), ("ce_source", source.encode())]
    record = Record(DEAD_LETTERS.name, b"{", headers, key)
    assert decode_inputs(record) == [DeadLettered(topic, to_time(0), cluster)]
