"""The sink against a server with all faults that OpenSearch can have: the same documents in the end."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opensearchpy import AsyncOpenSearch
from prometheus_client import CollectorRegistry

from pipeline.metrics import IndexMetrics
from pipeline.sinks.bulk import (
    BulkOutcome,
    BulkResult,
    Document,
    WriteResult,
    encode_body,
    encode_source,
    judge_bulk,
    judge_item,
    judge_status,
    split_batches,
)
from pipeline.sinks.opensearch import OpenSearchSink
from runtime.errors import NotProvisionedError
from runtime.opensearch.client import create_client
from runtime.settings.opensearch_connection import build_opensearch_connection
from schemas.index_family import MAPPING_VERSION
from schemas.indices import ATTEMPTS, NODE_STATES, TRENDS
from tests.support.builders.index_documents import INDEX, a_document
from tests.support.fakes.opensearch import TROUBLES, FakeOpenSearch, serving
from tests.support.stress import count_examples
from tests.support.waiting import eventually_async


def connect(fake: FakeOpenSearch) -> AsyncOpenSearch:
    return create_client(build_opensearch_connection(fake.url))


@asynccontextmanager
async def a_sink(fake: FakeOpenSearch, **how: Any) -> AsyncIterator[OpenSearchSink]:
    async with serving(fake):
        sink = OpenSearchSink(
            connect(fake),
            IndexMetrics("test", CollectorRegistry()),
            max_backoff_seconds=0.002,
            **how,
        )
        try:
            yield sink
        finally:
            await sink.close()


async def write_documents(fake: FakeOpenSearch, documents: Sequence[Document], **how: Any) -> WriteResult:
    async with a_sink(fake, **how) as sink:
        return await sink.write(documents)


def list_ids(fake: FakeOpenSearch) -> set[str]:
    return {name for _, name in fake.documents}


async def test_documents_are_written_into_an_index_that_is_made_first() -> None:
    fake = FakeOpenSearch()
    await write_documents(fake, [a_document("a"), a_document("b", None)])
    assert list_ids(fake) == {"a", "b"}
    assert fake.requests.index(f"PUT /{INDEX}") < fake.requests.index("POST /_bulk")


async def test_an_older_version_is_a_conflict_and_changes_nothing() -> None:
    fake = FakeOpenSearch()
    await write_documents(fake, [a_document("a", 5)])
    result = await write_documents(fake, [a_document("a", 4), a_document("b", 1)])
    assert [conflict.id for conflict in result.conflicts] == ["a"]
    assert fake.documents[INDEX, "a"][0] == 5
    assert result.refused == []


async def test_a_refused_document_does_not_stop_the_others() -> None:
    fake = FakeOpenSearch()
    result = await write_documents(fake, [a_document("a"), a_document("bad", poison=True), a_document("c")])
    assert list_ids(fake) == {"a", "c"}
    assert [(document.id, cause) for document, cause in result.refused] == [("bad", "400 type_400: why")]


async def test_a_request_that_is_too_long_is_halved_until_it_fits() -> None:
    fake = FakeOpenSearch(max_bytes=2_000)
    many = [a_document(f"d{i}", text="x" * 300) for i in range(16)]
    result = await write_documents(fake, [*many, a_document("huge", text="x" * 5_000)])
    assert list_ids(fake) == {f"d{i}" for i in range(16)}
    assert [document.id for document, _ in result.refused] == ["huge"]


async def test_without_a_template_the_error_names_the_command_to_run() -> None:
    with pytest.raises(NotProvisionedError, match=r"no index template .* run `schedulerlog pipeline provision`"):
        await write_documents(FakeOpenSearch(templates={}), [a_document("a")])


@pytest.mark.parametrize(("version", "cause"), [(0, "0, not"), (99, "99, newer than"), (None, "None, not")])
async def test_an_index_of_another_mapping_version_is_not_written(version: object, cause: str) -> None:
    fake = FakeOpenSearch(indices={INDEX: {"_meta": {"schedulerlog_mapping_version": version}}})
    with pytest.raises(NotProvisionedError, match=f"mapping version {cause} {MAPPING_VERSION}"):
        await write_documents(fake, [a_document("a")])
    assert list_ids(fake) == set()


async def test_h5_an_index_that_cant_be_made_is_waited_for_and_costs_no_document(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake = FakeOpenSearch(refused_indices=3)
    result = await write_documents(fake, [a_document("a")])
    assert list_ids(fake) == {"a"}
    assert not result.refused
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2, "one when it begins and one when it ends"
    assert f"index {INDEX} can't be made: " in warnings[0]
    assert "[1000]/[1000] maximum shards open" in warnings[0]


@pytest.mark.parametrize("day", ["9000.01.01", "2026.11.24", "9999.99.99", "2014.06.05"])
async def test_h5_a_document_of_a_day_that_cant_be_makes_no_index(day: str) -> None:
    fake = FakeOpenSearch()
    absurd = replace(a_document("b"), index=f"schedulerlog-attempts-{day}")
    late = replace(a_document("c"), index="schedulerlog-attempts-2026.11.23")
    clock = partial(datetime, 2026, 11, 22, 23, 59, tzinfo=UTC)
    result = await write_documents(fake, [a_document("a"), absurd, late], clock=clock)
    assert list_ids(fake) == {"a", "c"}
    assert [document.id for document, _ in result.refused] == ["b"]
    assert not any(day in request for request in fake.requests)


async def test_n1_a_document_is_not_refused_by_a_clock_that_was_set_since_it_was_found_right() -> None:
    fake = FakeOpenSearch()
    now = [datetime(2016, 11, 22, tzinfo=UTC)]

    async def wait_for_right_time() -> None:
        now[0] = datetime(2026, 11, 22, tzinfo=UTC)

    absurd = replace(a_document("b"), index="schedulerlog-attempts-2026.11.24")
    result = await write_documents(
        fake, [a_document("a"), absurd], clock=lambda: now[0], wait_for_right_time=wait_for_right_time
    )
    assert list_ids(fake) == {"a"}
    assert [document.id for document, _ in result.refused] == ["b"], "also by the right clock"


async def test_several_documents_are_read_back_in_their_order_once_every_shard_answers() -> None:
    fake = FakeOpenSearch()
    async with a_sink(fake) as sink:
        await sink.write([a_document("a"), a_document("b", 7)])
        fake.trouble = iter(["items", "items"])
        read = await sink.read_stored([a_document("b"), a_document("unknown"), a_document("a")])
    assert read == [{"name": "b", "version": 7}, None, {"name": "a", "version": 1}]
    assert fake.requests.count("POST /_mget") == 3


async def test_while_no_server_answers_the_sink_is_waiting() -> None:
    fake = FakeOpenSearch()
    async with serving(fake):
        pass
    sink = OpenSearchSink(connect(fake), IndexMetrics("test", CollectorRegistry()), max_backoff_seconds=0.002)
    writing = asyncio.create_task(sink.write([a_document("a")]))
    await eventually_async(lambda: sink.is_waiting)
    assert not writing.done()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await sink.close()


@given(st.integers(0, 2**32))
@settings(max_examples=count_examples(8))
def test_any_sequence_of_faults_ends_in_the_same_documents(seed: int) -> None:
    asyncio.run(_write_in_trouble(random.Random(seed)))


async def _write_in_trouble(chance: random.Random) -> None:
    versions = [a_document(f"a{i}", version) for i in range(6) for version in chance.sample(range(1, 9), 3)]
    records = [a_document(f"r{i}", None) for i in range(6)]
    poisoned = [a_document(f"p{i}", poison=True) for i in range(2)]
    todo = [*versions, *records, *poisoned]
    chance.shuffle(todo)
    fake = FakeOpenSearch(iter(chance.choices(TROUBLES, k=chance.randrange(25))), max_bytes=chance.choice([500, 10**6]))
    result = await write_documents(fake, todo, batch_documents=chance.choice([1, 3, 100]))
    newest = {entry.id: max(other.version or 0 for other in versions if other.id == entry.id) for entry in versions}
    assert {name: version for (_, name), (version, _) in fake.documents.items() if name in newest} == newest
    assert list_ids(fake) == newest.keys() | {record.id for record in records}
    assert {document.id for document, _ in result.refused} == {"p0", "p1"}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, BulkOutcome.DONE), (201, BulkOutcome.DONE), (409, BulkOutcome.CONFLICT), (413, BulkOutcome.SPLIT),
        (400, BulkOutcome.REFUSED), (401, BulkOutcome.RETRY), (403, BulkOutcome.RETRY), (404, BulkOutcome.RETRY),
        (429, BulkOutcome.RETRY), (500, BulkOutcome.RETRY), (502, BulkOutcome.RETRY), (503, BulkOutcome.RETRY),
        (504, BulkOutcome.RETRY),
    ],
)  # fmt: skip
def test_the_outcome_follows_from_the_status(status: int, outcome: BulkOutcome) -> None:
    assert judge_status(status).outcome is outcome
    assert judge_item({"index": {"status": status}}).outcome is outcome


def test_h5_a_400_about_the_index_is_tried_again() -> None:
    for kind in ("validation_exception", "index_closed_exception"):
        item = {"create": {"status": 400, "error": {"type": kind, "reason": "why"}}}
        assert judge_item(item) == BulkResult(BulkOutcome.RETRY, f"400 {kind}: why")


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(json, st.integers(0, 4))
def test_an_answer_that_makes_no_sense_is_no_success(answer: Any, documents: int) -> None:
    answers = judge_bulk(answer, documents)
    assert len(answers) == documents
    if not (isinstance(answer, dict) and ("items" in answer or answer.get("errors") is False)):
        assert {item.outcome for item in answers} <= {BulkOutcome.RETRY}


def test_an_answer_about_another_number_of_documents_is_no_success() -> None:
    assert judge_bulk({"errors": True, "items": [{"index": {"status": 201}}]}, 2)[0].outcome is BulkOutcome.RETRY
    assert judge_bulk({"errors": False, "items": []}, 2) == [BulkResult(BulkOutcome.DONE)] * 2


def test_a_body_is_two_lines_a_document_and_ends_with_a_line_break() -> None:
    first = replace(a_document("c", 7), keeps_first=True)
    lines = encode_body([a_document("a", 7), a_document("b", None), first]).split(b"\n")
    assert [orjson.loads(line) for line in lines[:6:2]] == [
        {"index": {"_index": INDEX, "_id": "a", "version": 7, "version_type": "external_gte"}},
        {"create": {"_index": INDEX, "_id": "b"}},
        {"index": {"_index": INDEX, "_id": "c", "version": 7, "version_type": "external"}},
    ]
    assert lines[6:] == [b""]


def test_a_record_with_line_breaks_still_makes_one_line() -> None:
    pretty = orjson.Fragment(orjson.dumps({"a": ["x", "y\n"]}, option=orjson.OPT_INDENT_2))
    line = encode_source({"record": pretty})
    assert b"\n" not in line
    assert orjson.loads(line) == {"record": {"a": ["x", "y\n"]}}


@given(st.lists(st.integers(1, 500), max_size=40), st.integers(1, 10), st.integers(200, 2_000))
def test_batches_keep_the_order_and_their_bounds(sizes: list[int], max_documents: int, max_bytes: int) -> None:
    documents = [Document("i", str(number), b"x" * size) for number, size in enumerate(sizes)]
    cut = list(split_batches(documents, max_documents, max_bytes))
    assert [document.id for batch in cut for document in batch] == [document.id for document in documents]
    assert all(len(batch) <= max_documents for batch in cut)
    assert all(len(batch) == 1 or sum(document.size for document in batch) <= max_bytes for batch in cut)


MONTH = f"{ATTEMPTS.alias}-2026.11.00"
STATES = f"{NODE_STATES.alias}-2026.11."


def a_month(*names: str) -> dict[str, Any]:
    return {name: {"_meta": {"schedulerlog_mapping_version": MAPPING_VERSION}} for name in names}


async def test_a_document_goes_into_the_index_of_its_month_where_there_is_one() -> None:
    fake = FakeOpenSearch(indices=a_month(MONTH))
    async with a_sink(fake) as sink:
        trend = replace(a_document("trend"), index=f"{TRENDS.alias}-2026.11.01")
        await sink.write([a_document("a"), trend])
        await sink.write([a_document("a", 2), replace(a_document("b"), index=f"{ATTEMPTS.alias}-2026.10.31")])
        assert [stored is not None for stored in await sink.read_stored([a_document("a"), a_document("c")])] == [
            True, False,
        ]  # fmt: skip
    assert fake.documents.keys() == {
        (MONTH, "a"), (trend.index, "trend"), (f"{ATTEMPTS.alias}-2026.10.31", "b"),
    }  # fmt: skip
    # Asked once for each day.
    assert fake.requests.count(f"GET /{MONTH}/_mapping") == 2
    assert fake.requests.count(f"GET /{ATTEMPTS.alias}-2026.10.00/_mapping") == 1
    assert not [request for request in fake.requests if request.startswith(f"GET /{TRENDS.alias}-2026.11.00")]


async def test_a_state_that_is_written_each_day_is_in_the_index_of_the_month_once_for_each() -> None:
    fake = FakeOpenSearch(indices=a_month(f"{STATES}00"))
    days = [replace(a_document("node/7", None, day=day), index=f"{STATES}{day}") for day in ("21", "22")]
    async with a_sink(fake) as sink:
        assert await sink.write(days) == WriteResult()
        again = replace(days[0], source=orjson.dumps({"day": "later"}))
        (conflict,) = (await sink.write([again])).conflicts
        (stored,) = await sink.read_stored([conflict])
    assert (stored or {}).get("day") == "21"
    assert fake.documents.keys() == {(f"{STATES}00", "node/7@21"), (f"{STATES}00", "node/7@22")}


async def test_a_month_that_was_deleted_is_looked_for_again() -> None:
    fake = FakeOpenSearch(indices=a_month(MONTH))
    async with a_sink(fake) as sink:
        await sink.write([a_document("a")])
        del fake.indices[MONTH]
        sink.forget_indices([MONTH])
        await sink.write([a_document("b")])
    assert fake.documents.keys() == {(MONTH, "a"), (INDEX, "b")}
