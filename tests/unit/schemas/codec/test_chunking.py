"""Long events are cut into records that every intermediary forwards, and put together again."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.summaries.text import write_refusal
from schemas.codec.chunking import MAX_TEXT, divide_sizes, encode_parts, join, split
from schemas.codec.records import MAX_VALUE_BYTES, Rejected, decode, encode
from schemas.documents.attempts import compute_verdict_digest
from schemas.events import AttemptSummarized, BindOutcome, Refusal
from tests.support.builders.events import STARTED, a_request, a_summary
from tests.support.stress import count_examples


def to_values(summary: AttemptSummarized) -> dict[str, Any]:
    """Return what a summary says, whatever the order of the tables behind its codes."""
    plain = summary.model_dump(exclude={"verdict", "score", "refused_by", "refusal", "refusals", "nodes", "verdicts"})
    refusals = [summary.refusals[code] if code >= 0 else None for code in summary.refusal.tolist()]
    words = [summary.verdicts[code] for code in summary.verdict.tolist()]
    rows = zip(summary.nodes, words, summary.score.tolist(), summary.refused_by.tolist(), refusals, strict=True)
    return plain | {"rows": list(rows)}


def encode_and_decode(summary: AttemptSummarized) -> AttemptSummarized:
    record = encode(summary)
    again = decode(record.value, record.headers)
    assert not isinstance(again, Rejected), str(again)
    assert isinstance(again, AttemptSummarized)
    return again


def a_big_summary(nodes: int, distinct: int, **more: Any) -> AttemptSummarized:
    """Long node names, ``distinct`` different refusals spread at random, every tenth node fits."""
    draw = random.Random(nodes)
    codes = ["CardInsufficientMemory", "CardInsufficientCore", "ExclusiveDeviceAllocateConflict", "CardUuidMismatch"]
    refusals = [
        Refusal(counts={code: draw.randrange(1, 9) for code in codes} | {f"Reason{number}": 1}, devices=8)
        for number in range(distinct)
    ]
    fits = np.arange(nodes) % 10 == 0
    refusal = np.where(fits, -1, np.array([draw.randrange(distinct) for _ in range(nodes)]))
    return a_summary(
        [f"ip-10-{number // 256}-{number % 256}-node.cn-north-1.compute.internal" for number in range(nodes)],
        refusals=refusals,
        refusal=refusal,
        verdict=fits.astype(np.int64),
        refused_by=np.where(fits, -1, 0),
        score=np.where(fits, np.linspace(0, 30, nodes), 0).astype(np.float32),
        **more,
    )


@pytest.mark.parametrize(("nodes", "distinct"), [(5_000, 3), (5_000, 4_000), (20_000, 1), (20_000, 2_000)])
def test_every_part_of_a_big_summary_is_a_record_that_fits(nodes: int, distinct: int) -> None:
    summary = a_big_summary(nodes, distinct)
    parts = split(summary)
    sizes = [len(encode(part).value) for part in parts]
    assert max(sizes) <= MAX_VALUE_BYTES
    assert sum(sizes) > 0.5 * MAX_VALUE_BYTES * (len(parts) - 1), "parts should not be half empty"
    random.Random(1).shuffle(parts)
    assert to_values(join([encode_and_decode(part) for part in parts])) == to_values(summary)


def test_joined_parts_say_each_refusal_once() -> None:
    summary = a_big_summary(20_000, 2_000)
    joined = join(split(summary))
    texts = [write_refusal(refusal) for refusal in joined.refusals]
    assert len(texts) == len(set(texts)) <= 2_000
    assert compute_verdict_digest(joined) == compute_verdict_digest(summary)


@settings(max_examples=count_examples(10))
@given(st.data())
def test_parts_join_to_the_whole_in_any_order(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 40))
    name = st.text('abc\x00"é中', min_size=1, max_size=12)
    padding = data.draw(st.sampled_from([1, 2_000]))
    nodes = [node * padding for node in data.draw(st.lists(name, min_size=count, max_size=count))]
    table = data.draw(
        st.lists(st.text(max_size=3).map(lambda bare: Refusal(bare=bare * padding)), min_size=1, max_size=5)
    )
    code = st.integers(-1, len(table) - 1)
    refusal = data.draw(st.lists(code, min_size=count, max_size=count))
    verdict = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    summary = a_summary(nodes, refusals=table, refusal=refusal, verdict=verdict)
    parts = data.draw(st.permutations(split(summary)))
    assert to_values(join([encode_and_decode(part) for part in parts])) == to_values(summary)


def test_a_short_summary_is_one_part() -> None:
    summary = a_summary()
    assert [part.parts for part in split(summary)] == [1]
    assert to_values(join(split(summary))) == to_values(summary)


@pytest.mark.parametrize("nodes", [1, 400, 999, 3_000])
def test_the_records_of_a_summary_fit_and_join_to_it(nodes: int) -> None:
    summary = a_big_summary(nodes, 50)
    records = encode_parts(summary)
    assert max(len(record.value) for record in records) <= MAX_VALUE_BYTES
    parts = [decode(record.value, record.headers) for record in records]
    assert to_values(join([part for part in parts if isinstance(part, AttemptSummarized)])) == to_values(summary)


def test_a_small_cluster_has_one_record_an_attempt() -> None:
    assert len(encode_parts(a_big_summary(10, 5))) == 1


def test_a_summary_without_nodes_is_one_part() -> None:
    assert to_values(join(split(a_summary([])))) == to_values(a_summary([]))


def test_a_long_error_is_cut_so_that_parts_fit() -> None:
    error = "Operation cannot be fulfilled: " + "错" * 400_000
    bind = BindOutcome(node="node1", bound=False, error=error, ended_at=STARTED)
    parts = split(a_big_summary(5_000, 10, error=error, missing=error, bind=bind))
    assert max(len(encode(part).value) for part in parts) <= MAX_VALUE_BYTES
    assert all(part.error.startswith(error[:MAX_TEXT]) for part in parts)
    assert parts[0].error.endswith(" (and 398031 more characters)")
    assert to_values(join(split(join(parts)))) == to_values(join(parts))


def test_hundreds_of_containers_leave_space_for_nodes() -> None:
    requests = [a_request(container=f"container-{number}") for number in range(300)]
    parts = split(a_big_summary(5_000, 1_000, requests=requests))
    assert max(len(encode(part).value) for part in parts) <= MAX_VALUE_BYTES


def test_more_containers_than_a_record_holds_still_make_few_parts() -> None:
    requests = [a_request(container=f"container-{number}") for number in range(1_000)]
    parts = split(a_big_summary(5_000, 10, requests=requests))
    assert len(parts) < 60
    assert max(len(encode(part).value) for part in parts) < 256 * 1024


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([], "different summaries"),
        ([{"part": 0, "parts": 2}], r"parts \[0\] of 2"),
        ([{"part": 0, "parts": 2}, {"part": 0, "parts": 2}], r"parts \[0, 0\] of 2"),
        ([{"part": 0, "parts": 2}, {"part": 1, "parts": 3}], "different summaries"),
        ([{"part": 0, "parts": 2}, {"part": 1, "parts": 2, "version": 2}], "different summaries"),
        ([{"part": 0, "parts": 2}, {"part": 1, "parts": 2, "attempt_id": "other"}], "different summaries"),
        ([{"part": 0, "parts": 2}, {"part": 1, "parts": 2, "verdicts": ["fits"]}], "different summaries"),
        ([{"part": 0, "parts": 65_536}], "of 65536"),
    ],
)
def test_parts_that_are_no_whole_are_refused(parts: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        join([a_summary(**part) for part in parts])


@given(st.lists(st.integers(0, 100)), st.integers(1, 300))
def test_runs_cover_every_node_once_and_are_as_long_as_they_may_be(sizes: list[int], limit: int) -> None:
    cuts = list(divide_sizes(np.array(sizes, dtype=np.int64), limit))
    assert [index for cut in cuts for index in range(cut.start, cut.stop)] == list(range(len(sizes)))
    for cut in cuts:
        assert sum(sizes[cut]) <= limit or cut.stop - cut.start == 1
        assert cut.stop == len(sizes) or sum(sizes[cut.start : cut.stop + 1]) > limit
