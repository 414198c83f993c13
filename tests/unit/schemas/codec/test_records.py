"""An event becomes a record and comes back; bytes that say no event come back as a reason, never as an exception."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.codec.chunking import split
from schemas.codec.records import EncodedRecord, Rejected, UnencodableError, decode, encode, encode_value
from schemas.events import EVENTS, AttemptSummarized, DevicesJudged, Event, NodesJudged, NodeStateChanged, PodRef
from tests.support.builders.events import a_summary, build_devices_judged, build_nodes_judged
from tests.support.builders.node_states import a_node_state, build_lookup
from tests.support.stress import count_examples

GOLDEN = Path(__file__).parents[3] / "contract/golden"
VALUES = [
    (path.parent.name.encode(), path.read_bytes())
    for path in sorted(GOLDEN.glob("*/*.json"))
    if not path.name.endswith(".headers.json")
]
TYPES = [event.TYPE.encode() for event in EVENTS]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([-1, 2**63, 2**64, "Z", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


def build_headers(kind: bytes) -> list[tuple[str, bytes]]:
    return [("ce_type", kind)]


def use_event(event: Event) -> None:
    """Use an event that was accepted in every way in which readers do."""
    record = encode(event)
    assert isinstance(decode(record.value, record.headers), type(event))
    assert event.id
    # Only devices of which a log does not report the node have no key.
    assert record.key or (isinstance(event, NodeStateChanged) and not event.node)
    if isinstance(event, DevicesJudged):
        assert len(list(event.iterate_devices(build_lookup([])))) == len(event.verdict)
    if isinstance(event, NodesJudged | AttemptSummarized):
        assert all(event.verdicts[code] for code in event.verdict.tolist() if event.verdicts[code])
    if isinstance(event, AttemptSummarized):
        split(event)


def decode_and_use(value: bytes | None, headers: Any) -> None:
    outcome = decode(value, headers)
    if isinstance(outcome, Rejected):
        assert outcome.cause
        assert len(str(outcome)) < 2000
    else:
        use_event(outcome)


@given(st.binary(), st.sampled_from(TYPES))
def test_random_bytes_never_raise(value: bytes, kind: bytes) -> None:
    decode_and_use(value, build_headers(kind))


@given(st.none() | st.binary(), st.none() | st.lists(st.tuples(st.text(), st.none() | st.binary())))
def test_random_headers_never_raise(value: bytes | None, headers: Any) -> None:
    decode_and_use(value, headers)


@given(anything, st.sampled_from(TYPES))
def test_random_json_never_raises(value: Any, kind: bytes) -> None:
    decode_and_use(json.dumps(value).encode("utf-8", "surrogatepass"), build_headers(kind))


@settings(max_examples=count_examples(75))
@given(st.sampled_from(VALUES), st.data())
def test_a_record_with_a_field_replaced_never_raises(record: tuple[bytes, bytes], data: st.DataObject) -> None:
    kind, value = record
    fields = json.loads(value)
    part: Any = fields
    key: Any = data.draw(st.sampled_from(sorted(fields)))
    while isinstance(part[key], dict | list) and part[key] and data.draw(st.booleans()):
        part = part[key]
        key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
    if isinstance(part, dict) and data.draw(st.booleans()):
        del part[key]
    else:
        part[key] = data.draw(anything)
    decode_and_use(json.dumps(fields).encode("utf-8", "surrogatepass"), build_headers(kind))


@settings(max_examples=count_examples(50))
@given(st.sampled_from(VALUES), st.data())
def test_a_record_with_bytes_replaced_never_raises(record: tuple[bytes, bytes], data: st.DataObject) -> None:
    kind, value = record
    start = data.draw(st.integers(0, len(value)))
    stop = data.draw(st.integers(start, min(start + 20, len(value))))
    decode_and_use(value[:start] + data.draw(st.binary(max_size=20)) + value[stop:], build_headers(kind))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "not JSON"),
        (b'{"uuid":' + b"[" * 1000 + b"]" * 1000 + b"}", "value.cluster: Field required"),
        (b'"\\ud800"', "not JSON"),
        (b'{"attempt_id": "\xff"}', "not JSON"),
        (b"NaN", "not JSON"),
        (b"[1e999]", "not JSON"),
        (b"[1e99]", "value: Input should be"),
        (b"null", "value: Input should be"),
        (b"{}", "value.cluster: Field required"),
        (b"\x00", "not JSON"),
        ("{}".encode("utf-16"), "not JSON"),
    ],
)
def test_what_is_no_event_is_rejected_with_its_place(value: bytes, why: str) -> None:
    outcome = decode(value, build_headers(DevicesJudged.TYPE.encode()))
    assert isinstance(outcome, Rejected)
    assert why in str(outcome)


def test_a_record_without_a_value_is_rejected() -> None:
    outcome = decode(None, build_headers(DevicesJudged.TYPE.encode()))
    assert str(outcome) == "value: the record has no value"


@pytest.mark.parametrize("headers", [None, [], [("ce_type", b"")], [("ce_type", None)], [("CE_TYPE", b"x")]])
def test_a_record_without_a_type_is_rejected(headers: Any) -> None:
    assert str(decode(b"{}", headers)) == "header ce_type: no event type is called ''"


def test_a_type_of_a_later_version_is_rejected_by_name() -> None:
    outcome = decode(b"{}", build_headers(b"io.schedulerlog.devices.judged.v2"))
    assert str(outcome) == "header ce_type: no event type is called 'io.schedulerlog.devices.judged.v2'"


def test_a_huge_header_does_not_make_a_huge_rejection() -> None:
    assert len(str(decode(b"{}", build_headers(b"\xff" * 1_000_000)))) < 1000


def test_a_huge_key_does_not_make_a_huge_rejection() -> None:
    value = orjson.loads(encode(build_nodes_judged()).value) | {"refusals": [{"counts": {"x" * 1_000_000: -1}}]}
    assert len(str(decode(orjson.dumps(value), build_headers(NodesJudged.TYPE.encode())))) < 1000


def test_the_last_of_two_equal_keys_counts() -> None:
    value = encode(a_summary()).value
    twice = value[:-1] + b',"status":"pending"}'
    outcome = decode(twice, build_headers(AttemptSummarized.TYPE.encode()))
    assert isinstance(outcome, AttemptSummarized)
    assert outcome.status == "pending"


def test_integers_beyond_64_bits_are_rejected_with_their_place() -> None:
    for number in (2**63, 2**64, 10**40):
        value = encode(build_devices_judged()).value.replace(b'"revision":[7]', b'"revision":[%d]' % number)
        outcome = decode(value, build_headers(DevicesJudged.TYPE.encode()))
        assert isinstance(outcome, Rejected)
        assert outcome.place == "value.revision"


def test_names_with_nul_and_foreign_letters_travel() -> None:
    event = build_nodes_judged(pod=PodRef(namespace="空间", name="a\x00b"))
    record = encode(event)
    assert record.key == "default/空间/a\x00b".encode()
    again = decode(record.value, record.headers)
    assert isinstance(again, NodesJudged)
    assert again.pod == event.pod


def test_what_utf_8_can_not_say_is_refused_with_the_place() -> None:
    pod = PodRef.model_construct(namespace="llm", name="\ud800", uid="")
    with pytest.raises(
        UnencodableError, match=r"io.schedulerlog.nodes.judged.v1: 'default/llm/\\ud800' has no UTF-8 form"
    ):
        encode(build_nodes_judged().model_copy(update={"pod": pod}))
    with pytest.raises(UnencodableError, match="not valid UTF-8"):
        encode(build_nodes_judged().model_copy(update={"nodes": ["\ud800"]}))
    with pytest.raises(UnencodableError, match="no JSON form"):
        encode_value({"nodes": object()})


def test_columns_of_any_layout_are_written() -> None:
    strided = build_devices_judged(["a", "b", "c"], revision=np.arange(6, dtype=">i4")[::2])
    assert orjson.loads(encode(strided).value)["revision"] == [0, 2, 4]


def test_json_made_before_is_written_as_it_is() -> None:
    event = build_nodes_judged()
    fragment = event.model_copy(update={"nodes": orjson.Fragment(b'["node1"]')})
    assert encode(fragment).value == encode(event).value


def test_a_record_carries_the_headers_of_cloud_events_in_binary_mode() -> None:
    record = encode(build_nodes_judged())
    assert record == EncodedRecord(
        b"default/llm/deepseek-a",
        record.value,
        [
            ("ce_specversion", b"1.0"),
            ("ce_type", b"io.schedulerlog.nodes.judged.v1"),
            ("content-type", b"application/json"),
            ("ce_id", b"0f" * 16 + b"/nodes/0"),
            ("ce_source", b"/clusters/default/schedulers/hami-scheduler"),
            ("ce_time", b"2026-11-21T03:06:23.217054Z"),
            ("ce_subject", b"llm/deepseek-a"),
        ],
    )


PRINTABLE = st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"], include_characters=" ")
"""Texts that ``str.isprintable`` takes; to filter other texts out makes hypothesis give up now and then."""


@given(st.lists(st.tuples(st.text(PRINTABLE, min_size=1, max_size=8), st.integers(0, 2**63 - 1)), max_size=6))
def test_what_is_encoded_decodes_to_the_same_event(refused: list[tuple[str, int]]) -> None:
    refusals = [{"counts": {code: count}, "devices": 8} for code, count in refused]
    nodes = [f"node{number}" for number in range(len(refused))]
    event = build_nodes_judged(nodes, refusals=refusals, refusal=list(range(len(refused))))
    record = encode(event)
    again = decode(record.value, record.headers)
    assert isinstance(again, NodesJudged)
    assert again.refusals == event.refusals
    assert again.refusal.tolist() == event.refusal.tolist()
    assert encode(again) == record


class TestUnusualJson:
    @given(st.data())
    def test_anything_in_the_place_of_a_field_is_read_or_rejected(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from([build_devices_judged(), build_nodes_judged(), a_summary(), a_node_state()]))
        plain = orjson.loads(encode(event).value)
        name = data.draw(st.sampled_from(sorted(plain)))
        plain[name] = data.draw(st.one_of(anything, st.lists(anything, max_size=3), wrap_in_list(plain[name])))
        assert isinstance(
            decode(json.dumps(plain).encode(), build_headers(event.TYPE.encode())), type(event) | Rejected
        )

    @given(st.data())
    def test_a_byte_changed_anywhere_is_read_or_rejected(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from([build_devices_judged(), build_nodes_judged(), a_summary(), a_node_state()]))
        value = bytearray(encode(event).value)
        for _ in range(data.draw(st.integers(1, 3))):
            value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
        assert isinstance(decode(bytes(value), build_headers(event.TYPE.encode())), type(event) | Rejected)

    def test_the_last_of_two_equal_names_counts(self) -> None:
        twice = encode(build_devices_judged()).value[:-1] + b',"devices":[]}'
        assert isinstance(decode(twice, build_headers(DevicesJudged.TYPE.encode())), Rejected)

    def test_a_column_within_a_column_is_rejected(self) -> None:
        value = encode(build_devices_judged()).value
        inner = re.sub(rb'"devices":\[([^\]]*)\]', rb'"devices":[[\1]]', value)
        assert inner != value
        assert isinstance(decode(inner, build_headers(DevicesJudged.TYPE.encode())), Rejected)

    def test_a_byte_order_mark_is_rejected(self) -> None:
        value = b"\xef\xbb\xbf" + encode(build_devices_judged()).value
        assert isinstance(decode(value, build_headers(DevicesJudged.TYPE.encode())), Rejected)


def wrap_in_list(value: Any) -> st.SearchStrategy[Any]:
    """Wrap the value in a list, or one of its entries."""
    if not isinstance(value, list) or not value:
        return st.just([value])
    places = st.integers(0, len(value) - 1)
    return places.map(lambda index: [*value[:index], [value[index]], *value[index + 1 :]])
