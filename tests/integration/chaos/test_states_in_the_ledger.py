"""The comparison of states must find what is wrong, or the runs that use it would prove nothing."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from schemas.codec.records import encode
from schemas.events import Event, NodeStateChanged
from schemas.json_types import Json
from tests.chaos import states
from tests.chaos.ledger import Entry, Verdict
from tests.chaos.states import SchedulerRun, SeenStates
from tests.support.builders.attempts import an_attempt
from tests.support.builders.node_states import EPOCH, a_node_state, build_states

TODAY, DAYS_AGO = "schedulerlog-node-states-2026.11.21", "schedulerlog-node-states-2026.11.19"
ATTEMPT = an_attempt({"node1": [["picked", "fits"]], "node2": [["NumaNotFit"]]}, chosen="node1")
STATES = build_states(*ATTEMPT)
STATE_1, STATE_2 = (state.id for state in STATES)


def build_ledger(*events: Event) -> list[Entry]:
    records = [encode(event) for event in events]
    return [
        Entry(event.id, event.TYPE, record.key.decode(), record.value, number)
        for number, (event, record) in enumerate(zip(events, records, strict=True))
    ]


def encode_state(state: NodeStateChanged) -> bytes:
    return encode(state).value


def build_seen(node_states: Sequence[NodeStateChanged], index: str = TODAY) -> SeenStates:
    return SeenStates(
        {state.id: [encode_state(state)] for state in node_states},
        [(index, state.id, json.loads(encode_state(state))) for state in node_states],
    )


ACCEPTED = build_ledger(*STATES, *ATTEMPT)
SEEN = build_seen(STATES)


def compare(accepted: Sequence[Entry] = ACCEPTED, seen: SeenStates = SEEN, *, may_be_more: bool = False) -> Verdict:
    verdict = Verdict()
    decisions = [entry for entry in accepted if entry.type != states.STATE]
    states.compare(accepted, decisions, seen, verdict, may_be_more=may_be_more)
    return verdict


def test_what_is_as_it_was_accepted_is_exact() -> None:
    assert compare().is_exact, str(compare())


def test_a_state_that_was_never_accepted_is_missing() -> None:
    verdict = compare(build_ledger(STATES[0], *ATTEMPT), build_seen(STATES[:1]))
    assert verdict.missing == [f"state {STATE_2}, which record {ATTEMPT[0].id} names"]


def test_a_state_that_was_accepted_after_its_verdict_is_found() -> None:
    verdict = compare(build_ledger(STATES[0], *ATTEMPT, STATES[1]))
    assert verdict.different == [f"state {STATE_2} was accepted after record {ATTEMPT[0].id}, which names it"]


def test_a_revision_that_is_used_twice_is_found() -> None:
    other = a_node_state("node1", 2, memory_used_mib=[0, 0])
    assert other.id == STATE_1
    verdict = compare(build_ledger(*STATES, *ATTEMPT, other))
    assert verdict.different == [f"state {STATE_1} has two contents"]


def test_a_state_that_is_written_again_is_the_same_state() -> None:
    again = STATES[0].model_copy(update={"observed_at": a_node_state().observed_at})
    published = dict(SEEN.published) | {STATE_1: [encode_state(STATES[0]), encode_state(again)]}
    tomorrow = ("schedulerlog-node-states-2026.11.22", STATE_1, json.loads(encode_state(again)))
    seen = replace(SEEN, published=published, documents=[*SEEN.documents, tomorrow])
    assert compare(build_ledger(*STATES, *ATTEMPT, again), seen).is_exact


def test_a_state_that_is_not_on_the_topic_is_missing() -> None:
    verdict = compare(seen=replace(SEEN, published={STATE_1: SEEN.published[STATE_1]}))
    assert (verdict.missing, verdict.extra, verdict.different) == ([f"state {STATE_2}"], [], [])


def test_a_state_that_is_not_in_the_index_is_missing() -> None:
    verdict = compare(seen=replace(SEEN, documents=SEEN.documents[1:]))
    wanted = [f"document of state {STATE_1} near the day of record {ATTEMPT[0].id}", f"document of state {STATE_1}"]
    assert verdict.missing == wanted


def test_a_state_that_is_only_in_an_index_from_before_the_day_before_is_missing() -> None:
    verdict = compare(seen=build_seen(STATES, DAYS_AGO))
    record = ATTEMPT[0].id
    assert verdict.missing == [
        f"document of state {state} near the day of record {record}" for state in (STATE_1, STATE_2)
    ]


@pytest.mark.parametrize("index", ["schedulerlog-node-states-2026.11.20", "schedulerlog-node-states-2026.11.22"])
def test_an_index_of_the_day_before_or_after_is_near_enough(index: str) -> None:
    assert compare(seen=build_seen(STATES, index)).is_exact


def test_another_content_on_the_topic_or_in_the_index_is_found() -> None:
    other = a_node_state("node1", 2, slots_used=[9, 9])
    on_topic = replace(SEEN, published=dict(SEEN.published) | {STATE_1: [encode_state(other)]})
    assert compare(seen=on_topic).different == [f"state {STATE_1}"]
    document: Json = json.loads(encode_state(other))
    in_index = replace(SEEN, documents=[(TODAY, STATE_1, document), SEEN.documents[1]])
    assert compare(seen=in_index).different == [f"document of state {STATE_1}"]


def test_a_verdict_on_a_device_that_the_state_does_not_have_is_found() -> None:
    short = [a_node_state("node1", 1), STATES[1]]
    verdict = compare(build_ledger(*short, *ATTEMPT), build_seen(short))
    assert verdict.different == [f"record {ATTEMPT[0].id} names device 1 of 1 of state {STATE_1}"]


def test_a_state_that_was_not_accepted_is_extra_unless_its_scheduler_was_killed() -> None:
    invented = build_seen([*STATES, a_node_state("node9")])
    assert compare(seen=invented).extra == [f"state default/hami-scheduler/node9/state/{EPOCH}/7"]
    assert compare(seen=invented, may_be_more=True).is_exact


def test_a_state_that_was_accepted_while_the_topics_were_read_is_not_extra() -> None:
    verdict, later = Verdict(), a_node_state("node9")
    decisions = [entry for entry in ACCEPTED if entry.type != states.STATE]
    meanwhile = [*ACCEPTED, *build_ledger(later)]
    seen = build_seen([*STATES, later])
    states.compare(ACCEPTED, decisions, seen, verdict, accepted_meanwhile=meanwhile, may_be_more=False)
    assert verdict.is_exact, str(verdict)


def test_states_of_runs_that_judged_nothing_here_are_not_looked_at() -> None:
    assert states.list_judging_runs(ACCEPTED) == {SchedulerRun("hami-scheduler", EPOCH)}
    assert compare(seen=build_seen([*STATES, a_node_state("node9", epoch=1)])).is_exact


def test_a_state_that_became_a_dead_letter_is_found() -> None:
    verdict = compare(seen=replace(SEEN, dead_letters=[STATE_2, "default/hami-scheduler/node2/state/1/7"]))
    assert verdict.different == [f"state {STATE_2} is a dead letter"]


ON_NODE_1 = [("GPU-node1-0", "picked"), ("GPU-node1-1", "fits")]


def test_the_api_shows_each_verdict_with_its_device() -> None:
    pod = ACCEPTED[-1].key
    assert compare(seen=replace(SEEN, device_rows={pod: ON_NODE_1})).is_exact
    nameless = [("", word) for _, word in ON_NODE_1]
    for rows in ([], nameless, ON_NODE_1[::-1], ON_NODE_1[:1]):
        assert compare(seen=replace(SEEN, device_rows={pod: rows})).different == [f"devices of {pod} in the API"]
