"""Frames survive damage around them, and damage never comes back as an entry."""

import random

import hypothesis.strategies as st
from hypothesis import given, settings

from scheduler.publish.spool.frames import Entry, EntryKind, decode_entries, encode_frames, measure, scan
from schemas.codec.records import EncodedRecord
from tests.support.builders.spool_entries import a_verdict
from tests.support.stress import count_examples

headers = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=8), st.binary(max_size=20)), max_size=4)
entries = st.builds(
    lambda kind, topic, key, value, head, encode_content, rows: Entry(
        kind, EncodedRecord(key, value, head, topic), encode_content, rows
    ),
    st.sampled_from(EntryKind),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.binary(max_size=30),
    st.binary(max_size=200),
    headers,
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**32 - 1),
)


def encode_content(*content: Entry) -> bytes:
    return b"".join(encode_frames(content))


@given(st.lists(entries, max_size=5))
def test_what_was_written_is_read(content: list[Entry]) -> None:
    data = encode_content(*content)
    scanned = scan(data, is_end=True)
    assert [entry for entry, _ in scanned.intact] == content
    assert (scanned.consumed, scanned.damaged) == (len(data), 0)


@given(st.lists(entries, max_size=5))
def test_the_size_is_reported_before_anything_is_written(content: list[Entry]) -> None:
    assert measure(content) == len(encode_content(*content))


def test_the_last_record_cut_at_every_byte_costs_nothing_but_itself() -> None:
    intact, last = encode_content(a_verdict("a"), a_verdict("b")), encode_content(a_verdict("c"))
    for cut in range(len(last)):
        scanned = scan(intact + last[:cut], is_end=True)
        assert [entry.ce_id for entry, _ in scanned.intact] == ["a/concluded", "b/concluded"]
        assert scanned.intact[-1][1] == len(intact)
        assert scanned.damaged == (cut > 0)


def test_a_record_cut_at_every_byte_waits_when_more_may_follow() -> None:
    last = encode_content(a_verdict("c"))
    for cut in range(1, len(last)):
        scanned = scan(last[:cut], is_end=False)
        assert (scanned.intact, scanned.consumed, scanned.damaged) == ([], 0, 0)
        assert scanned.wanted > 0


@settings(max_examples=count_examples(40))
@given(st.data())
def test_a_flipped_bit_costs_one_record_and_is_counted(data: st.DataObject) -> None:
    parts = [encode_content(a_verdict(name, size=40)) for name in "abcde"]
    frames = bytearray(b"".join(parts))
    bit = data.draw(st.integers(0, len(frames) * 8 - 1))
    frames[bit // 8] ^= 1 << (bit % 8)
    hit = next(number for number in range(5) if bit // 8 < sum(map(len, parts[: number + 1])))
    scanned = scan(bytes(frames), is_end=True)
    assert [entry.ce_id[0] for entry, _ in scanned.intact] == [name for name in "abcde" if name != "abcde"[hit]]
    assert scanned.damaged == 1


def test_a_zeroed_stretch_is_one_damaged_place() -> None:
    first, last = encode_content(a_verdict("a")), encode_content(a_verdict("b"))
    scanned = scan(first + bytes(4096) + last, is_end=True)
    assert ([entry.ce_id for entry, _ in scanned.intact], scanned.damaged) == (["a/concluded", "b/concluded"], 1)


def test_a_record_that_holds_frames_is_one_record() -> None:
    inner = encode_content(a_verdict("inner"))
    outer = Entry(EntryKind.VERDICT, EncodedRecord(b"k", inner * 3, [("ce_id", b"outer")], "t"), 0)
    assert [entry.ce_id for entry in decode_entries(encode_content(outer))] == ["outer"]


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(garbage: bytes) -> None:
    assert scan(garbage, is_end=True).consumed == len(garbage)


def test_random_damage_never_yields_what_was_not_written() -> None:
    draw = random.Random(11)
    content = [a_verdict(str(number), size=draw.randrange(200)) for number in range(50)]
    for _ in range(300):
        data = bytearray(encode_content(*content))
        for _ in range(draw.randrange(1, 6)):
            start = draw.randrange(len(data))
            data[start : start + draw.randrange(80)] = draw.randbytes(draw.randrange(80))
        scanned = [entry for entry, _ in scan(bytes(data), is_end=True).intact]
        assert all(entry in content for entry in scanned)
        assert len(scanned) >= 50 - 20
