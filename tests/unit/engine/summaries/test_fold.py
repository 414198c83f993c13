"""The fold: what is counted, how what is missing is named, and that order and repetition do not matter."""

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.summaries.fold import AttemptFold, merge_summaries, summarize, with_bind
from schemas.codec.records import decode, encode, encode_value
from schemas.documents.attempts import build_attempt_document
from schemas.events import (
    NOT_REASONS,
    AttemptConcluded,
    AttemptEvent,
    AttemptSummarized,
    DetailDropped,
    DevicesJudged,
    NodesJudged,
    Refusal,
)
from tests.support.builders.attempts import (
    ENDED,
    STARTED,
    a_bind,
    an_attempt,
    build_common,
    count_reasons,
    find_refusing,
)

WORDS = [
    "picked",
    "fits",
    "not reached",
    "NumaNotFit",
    "CardInsufficientMemory",
    "CardInsufficientCore",
    "CardCordoned",
]
EIGHT = ["CardInsufficientMemory"] * 3 + ["NumaNotFit"] * 2 + ["CardInsufficientCore"] * 2 + ["CardCordoned"]
REFUSING = {"node1": [EIGHT], "node2": [["CardInsufficientMemory"] * 4]}

attempts = st.dictionaries(
    st.text("abc019-", min_size=1, max_size=6),
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=2, max_size=2),
    max_size=9,
)
"""Per node the verdicts of two containers."""


def is_same(summary: AttemptSummarized, second_part: AttemptSummarized) -> bool:
    return encode_value(summary) == encode_value(second_part)


def get_refusal(summary: AttemptSummarized, node: str) -> Refusal | None:
    code = int(summary.refusal[summary.nodes.index(node)])
    return summary.refusals[code] if code >= 0 else None


def without(events: list[AttemptEvent], kind: type[AttemptEvent]) -> list[AttemptEvent]:
    return [event for event in events if not isinstance(event, kind)]


def change_first(events: list[AttemptEvent], kind: type[AttemptEvent], **fields: Any) -> list[AttemptEvent]:
    """Change fields of the first event of a kind."""
    index = next(index for index, event in enumerate(events) if isinstance(event, kind))
    return [*events[:index], events[index].model_copy(update=fields), *events[index + 1 :]]


def test_a_refusal_counts_out_of_all_devices_of_the_node() -> None:
    summary = summarize(an_attempt(REFUSING))
    fields = {"CardInsufficientMemory": 3, "NumaNotFit": 2, "CardInsufficientCore": 2, "CardCordoned": 1}
    assert get_refusal(summary, "node1") == Refusal(counts=fields, devices=8)
    assert get_refusal(summary, "node2") == Refusal(counts={"CardInsufficientMemory": 4}, devices=4)
    assert summary.complete
    assert summary.status == "failed"


def test_nodes_are_sorted_by_name_whatever_their_order_was() -> None:
    summary = summarize(an_attempt({"b": [["NumaNotFit"]], "c": [["CardCordoned"]], "a": [["NumaNotFit"] * 2]}))
    assert summary.nodes == ["a", "b", "c"]
    assert [get_refusal(summary, node) for node in "abc"] == [
        Refusal(counts={"NumaNotFit": 2}, devices=2),
        Refusal(counts={"NumaNotFit": 1}, devices=1),
        Refusal(counts={"CardCordoned": 1}, devices=1),
    ]


def test_only_the_container_that_refused_the_node_is_counted() -> None:
    summary = summarize(an_attempt({"node1": [["picked", "NumaNotFit"], ["CardCordoned", "CardCordoned"]]}))
    assert get_refusal(summary, "node1") == Refusal(counts={"CardCordoned": 2}, devices=2)
    assert summary.refused_by.tolist() == [1]


def test_picked_devices_are_those_of_the_chosen_node_container_by_container() -> None:
    devices = {"node1": [["picked", "fits"], ["fits", "picked"]], "node2": [["picked"], ["picked"]]}
    summary = summarize(an_attempt(devices, chosen="node1"))
    assert summary.picked_devices == ["GPU-node1-0", "GPU-node1-1"]
    assert summary.fit_nodes == 2


def test_an_unregistered_node_keeps_its_bare_refusal() -> None:
    summary = summarize(an_attempt(REFUSING, unregistered=["node0"]))
    assert get_refusal(summary, "node0") == Refusal(bare="node unregistered")


@pytest.mark.parametrize(
    ("bind", "chosen", "status"),
    [
        (None, "node1", "pending"),
        (None, None, "failed"),
        (a_bind(), "node1", "succeeded"),
        (a_bind(bound=False), "node1", "failed"),
    ],
)
def test_the_status_follows_from_the_filter_and_the_bind(bind: Any, chosen: str | None, status: str) -> None:
    events = an_attempt({"node1": [["picked" if chosen else "NumaNotFit"]]}, chosen=chosen)
    assert summarize([*events, *([bind] if bind else [])]).status == status


def test_an_attempt_that_ended_with_an_error_failed() -> None:
    summary = summarize(an_attempt({}, error="calcScore failed"))
    assert (summary.status, summary.error, summary.complete) == ("failed", "calcScore failed", True)


def test_without_its_end_an_attempt_is_pending_and_says_what_is_missing() -> None:
    fold = AttemptFold()
    for event in without(an_attempt(REFUSING), AttemptConcluded):
        fold.add(event)
    summary = fold.summarize()
    assert not fold.is_complete()
    assert (summary.status, summary.complete) == ("pending", False)
    assert summary.missing == "the end of the attempt is missing (1 device record and 1 node record came)"


def test_before_the_end_arrives_the_requests_are_those_of_the_records() -> None:
    events = an_attempt(REFUSING)
    (judged,) = (event for event in events if isinstance(event, DevicesJudged))
    assert summarize(without(events, AttemptConcluded)).requests == [judged.request]


def test_a_missing_record_is_named_by_its_part() -> None:
    events = an_attempt({f"node{i}": [["NumaNotFit"]] for i in range(6)}, nodes_a_record=2)
    summary = summarize([event for event in events if event.id != build_common()["attempt_id"] + "/devices/1"])
    assert summary.missing == "1 of 3 device records are missing (parts 1)"
    assert len(summary.nodes) == 6


def test_a_claim_of_endless_records_costs_nothing() -> None:
    summary = summarize(change_first(an_attempt(REFUSING), AttemptConcluded, device_records=2**62))
    assert not summary.complete
    assert len(summary.missing) < 200


def test_device_records_that_were_given_up_are_not_missing_and_the_nodes_own_counts_stand() -> None:
    dropped = DetailDropped(**build_common(), dropped_at=ENDED, device_records=1, judged_devices=12, cause="spool full")
    fold = AttemptFold()
    for event in [*without(an_attempt(REFUSING), DevicesJudged), dropped]:
        fold.add(event)
    assert fold.is_complete()
    summary = fold.summarize()
    assert summary.complete
    assert get_refusal(summary, "node1") == count_reasons(EIGHT)


def test_where_rows_and_node_record_disagree_the_rows_count_and_the_summary_says_so() -> None:
    events = change_first(
        an_attempt(REFUSING), NodesJudged, refusals=[count_reasons(["NumaNotFit"] * 8), count_reasons(EIGHT[:4])]
    )
    summary = summarize(events)
    assert get_refusal(summary, "node1") == count_reasons(EIGHT)
    assert not summary.complete
    assert summary.missing == (
        "node1: the device rows count '1/8 CardCordoned, 2/8 CardInsufficientCore, 2/8 NumaNotFit, "
        "3/8 CardInsufficientMemory', its record says '8/8 NumaNotFit', and 1 more nodes"
    )


def test_an_end_that_counts_other_nodes_than_the_records_hold_is_an_imbalance() -> None:
    summary = summarize(change_first(an_attempt(REFUSING), AttemptConcluded, judged_nodes=3))
    assert summary.missing == "the end counts 3 nodes, the records hold 2"


def test_known_by_its_bind_alone_an_attempt_says_so() -> None:
    summary = summarize([a_bind()])
    assert (summary.status, summary.complete, summary.chosen) == ("succeeded", False, "node1")
    assert summary.missing == "everything but the bind is missing"


def test_no_events_make_no_summary() -> None:
    with pytest.raises(ValueError, match="first record"):
        summarize([])


def test_a_record_of_another_attempt_is_refused() -> None:
    fold = AttemptFold()
    fold.add(an_attempt(REFUSING)[0])
    with pytest.raises(ValueError, match="does not belong to attempt"):
        fold.add(an_attempt(REFUSING, **build_common("other"))[0])


@given(attempts, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_matters(devices: Any, chance: random.Random) -> None:
    events = [*an_attempt(devices, nodes_a_record=2), a_bind(), a_bind(bound=False, after_ms=30)]
    published = summarize(events)
    repeated = [*events, *chance.sample(events, len(events) // 2)]
    chance.shuffle(repeated)
    assert is_same(summarize(repeated), published)


@given(attempts)
def test_counts_are_those_of_a_slow_count_device_by_device(devices: Any) -> None:
    events = an_attempt(devices, nodes_a_record=2)
    slow: dict[tuple[int, str], Counter[str]] = {}
    for event in events:
        if isinstance(event, DevicesJudged):
            for row in event.iterate_devices(lambda _node, _revision: None):
                slow.setdefault((event.container, row.node), Counter())[row.verdict] += 1
    # With nothing in the node records but who refused, every count must come from the rows.
    silent = [
        event.model_copy(update={"refusal": np.full(len(event.nodes), -1)}) if isinstance(event, NodesJudged) else event
        for event in events
    ]
    summary = summarize(silent)
    for node, containers in devices.items():
        container = find_refusing(containers)
        fields = get_refusal(summary, node)
        reasons = {word: x for word, x in slow.get((container, node), Counter()).items() if word not in NOT_REASONS}
        assert dict(fields.counts if fields else {}) == reasons
        assert all(x <= len(containers[container]) for x in reasons.values())
    if all(verdicts for containers in devices.values() for verdicts in containers):
        published = summarize(events)
        assert [get_refusal(published, node) for node in published.nodes] == [
            get_refusal(summary, node) for node in published.nodes
        ]


@given(attempts, st.randoms(use_true_random=False))
def test_device_records_may_name_the_nodes_in_another_order_and_others_besides(
    devices: Any, chance: random.Random
) -> None:
    names = [*devices, "elsewhere"]
    chance.shuffle(names)
    elsewhere = {"elsewhere": [["NumaNotFit"], []]}
    turned = an_attempt({name: (devices | elsewhere)[name] for name in names}, nodes_a_record=2)
    events = without(an_attempt(devices, nodes_a_record=2), DevicesJudged)
    rows = [event for event in turned if isinstance(event, DevicesJudged)]
    summary = summarize([*rows, *events])
    expected = {node: find_refusing(containers) for node, containers in devices.items()}
    assert {node: get_refusal(summary, node) for node in summary.nodes} == {
        node: count_reasons(devices[node][container]) if container >= 0 else None
        for node, container in expected.items()
    }


def test_models_that_count_more_rows_than_there_are_make_no_event() -> None:
    record = next(event for event in an_attempt(REFUSING) if isinstance(event, DevicesJudged))
    fields = record.model_dump() | {"models": {"A100": 2**62, "H100": 2**62}}
    with pytest.raises(ValidationError, match="models count 9223372036854775808 rows where 12 are there"):
        DevicesJudged.model_validate(fields)


def test_devices_that_the_end_says_were_picked_count_only_where_it_says_which_node_was_chosen() -> None:
    events = change_first(an_attempt({"node1": [["picked"]]}, chosen="node1"), AttemptConcluded, chosen=None)
    assert (summarize(events).picked, summarize(events).picked_devices) == ([], [])


@given(attempts)
def test_a_summary_travels_as_a_record_and_makes_a_document(devices: Any) -> None:
    summary = summarize(an_attempt(devices))
    record = encode(summary)
    again = decode(record.value, record.headers)
    assert isinstance(again, AttemptSummarized)
    assert is_same(again, summary)
    assert build_attempt_document(again, "")["complete"]


@given(attempts, st.booleans())
def test_a_later_bind_gives_what_a_bind_in_time_would_have_given(devices: Any, bound: bool) -> None:
    events, bind = an_attempt(devices), a_bind(bound=bound)
    in_time = summarize([*events, bind])
    assert is_same(with_bind(summarize(events), bind), in_time)
    assert is_same(merge_summaries(summarize(events), summarize([bind])), in_time)
    assert is_same(merge_summaries(summarize([bind]), summarize(events)), in_time)


def test_of_two_binds_the_later_one_holds() -> None:
    failed, bound = a_bind(bound=False, after_ms=20), a_bind(after_ms=30)
    summary = summarize([*an_attempt({"node1": [["picked"]]}, chosen="node1"), bound])
    assert with_bind(summary, failed) is summary
    assert with_bind(with_bind(summary, bound), failed).status == "succeeded"


@given(attempts, st.data())
def test_what_knows_more_has_the_greater_version(devices: Any, data: st.DataObject) -> None:
    """However little time there was between the events."""
    quick = {"ended_at": STARTED}
    events = [*change_first(an_attempt(devices, nodes_a_record=2), AttemptConcluded, **quick), a_bind(ended_at=STARTED)]
    some = data.draw(st.lists(st.sampled_from(events), min_size=1, unique_by=lambda event: event.id))
    part, full_summary = summarize(some), summarize(events)
    assert part.version <= full_summary.version
    if part.version == full_summary.version:
        assert is_same(part, full_summary)


@given(attempts, st.data())
def test_a_partial_summary_never_takes_anything_away(devices: Any, data: st.DataObject) -> None:
    events = [*an_attempt(devices, nodes_a_record=2), a_bind()]
    parts = st.lists(st.sampled_from(events), min_size=1, unique_by=lambda event: event.id).map(summarize)
    first_part, second_part, full_summary = data.draw(parts), data.draw(parts), summarize(events)
    assert is_same(merge_summaries(first_part, second_part), merge_summaries(second_part, first_part))
    assert is_same(merge_summaries(first_part, first_part), first_part)
    assert is_same(merge_summaries(full_summary, first_part), full_summary)
    both = merge_summaries(first_part, second_part)
    assert both.version >= max(first_part.version, second_part.version)
    assert set(both.nodes) == set(first_part.nodes) | set(second_part.nodes)
    assert both.bind == (first_part.bind or second_part.bind)


def test_two_halves_published_apart_hold_all_nodes_together() -> None:
    events = an_attempt({f"node{i}": [["NumaNotFit"]] for i in range(6)}, nodes_a_record=3)
    first = [event for event in events if isinstance(event, NodesJudged) and event.part == 0]
    others = [event for event in events if event not in first]
    both = merge_summaries(summarize(first), summarize(others))
    assert both.nodes == [f"node{i}" for i in range(6)]
    assert both.ended_at == ENDED
    assert both.status == "failed"
    assert [get_refusal(both, node) for node in both.nodes] == [Refusal(counts={"NumaNotFit": 1}, devices=1)] * 6


def test_a_bind_published_first_still_wins_over_a_filter_published_later() -> None:
    """Its version is the greater one however many nodes the filter knows; the store then says conflict and both are
    put together."""
    filtered = summarize(an_attempt({f"node{i}": [["NumaNotFit"]] for i in range(50)}))
    bind = a_bind(ended_at=ENDED + timedelta(microseconds=1))
    assert summarize([bind]).version > filtered.version


def test_m5_containers_that_the_end_leaves_out_are_counted_in_what_is_missing() -> None:
    *rows, end = an_attempt(REFUSING)
    summary = summarize([*rows, end.model_copy(update={"requests_left_out": 8_500})])
    assert not summary.complete
    assert summary.missing == "8500 containers of the pod are left out: it has more than an event holds"
