"""Bugs put into a worker on purpose, to see that the ledger finds them. Each breaks one promise of the pipeline.

A bug is made where a hurried engineer would make it.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from broker.record import Record
from pipeline.sinks import bulk
from pipeline.sinks.bulk import Document
from pipeline.sinks.bulk_result import BulkOutcome, BulkResult
from pipeline.sinks.opensearch import OpenSearchSink
from pipeline.worker import agent, attempt_documents, faust_app
from pipeline.worker.batch_builder import BatchBuilder
from pipeline.worker.offset_tracker import OffsetTracker
from pipeline.worker.open_attempts import OpenAttempts
from pipeline.worker.writer import Writer
from pipeline.worker.writes import AttemptWrite
from schemas.events import AttemptConcluded, BindConcluded
from schemas.indices import Index
from summaries import fold
from summaries.node_table import node_table

PER_NODE: Final = ("nodes", "verdict", "score", "refused_by", "refusal")


def _acknowledge_before_the_write() -> None:
    track = OffsetTracker.track

    def tracking(offsets: OffsetTracker[Any], offset: int, acknowledge: Any) -> bool:
        acknowledge()
        return track(offsets, offset, acknowledge)

    setattr(OffsetTracker, "track", tracking)


def _take_batches() -> None:
    async def records(_app: Any, stream: Any) -> AsyncIterator[Record]:
        async for runs in stream.take(20, within=0.1):
            for record in (each for run in runs for each in run):
                about = record.topic, record.partition, record.offset, record.key, record.value, record.headers
                yield Record(*about, lambda: None)

    setattr(faust_app, "records", records)


def _two_agents_side_by_side() -> None:
    """``concurrency=2``, with a state for each: the records of an attempt are divided between them."""
    process = agent.DecisionsAgent._process
    others: dict[int, agent.DecisionsAgent] = {}
    turn = count()

    async def processing(decisions: agent.DecisionsAgent, record: Any) -> None:
        other = others.setdefault(id(decisions), agent.DecisionsAgent(decisions._writers, decisions._metrics))
        await process(decisions if next(turn) % 2 else other, record)

    setattr(agent.DecisionsAgent, "_process", processing)


def _random_ids() -> None:
    document = attempt_documents.summary_document

    def with_random_id(*about: Any) -> Document:
        made = document(*about)
        return Document(made.index, uuid.uuid4().hex, made.source, made.version, made.origin)

    setattr(attempt_documents, "summary_document", with_random_id)


def _index_by_the_time_of_writing() -> None:
    def name(index: Index, _started: datetime) -> str:
        now = datetime.now(UTC)
        return f"{index.alias}-{now:%Y.%m}.{now.second % 28 + 1:02}"

    setattr(Index, "name", name)


def _no_version() -> None:
    action = bulk._action

    def without(document: Document) -> bytes:
        if document.version is None:
            return action(document)
        return b'{"index":{"_index":"%s","_id":"%s"}}' % (document.index.encode(), document.id.encode())

    setattr(bulk, "_action", without)


def _lost_conclusions() -> None:
    add = OpenAttempts.add
    seen = count(1)

    def adding(attempts: OpenAttempts, event: Any, *about: Any) -> Any:
        if isinstance(event, AttemptConcluded) and next(seen) % 10 == 0:
            return None
        return add(attempts, event, *about)

    setattr(OpenAttempts, "add", adding)


def _no_dead_letters() -> None:
    def nothing(*_: Any) -> None:
        """The record is acknowledged, and lost."""

    setattr(BatchBuilder, "_dead_letter", nothing)


def _a_failed_request_counts_as_written() -> None:
    async def once(sink: OpenSearchSink, batch: Sequence[Document]) -> list[BulkResult]:
        await sink._try("POST", "/_bulk", body=bulk.body(batch))
        return [BulkResult(BulkOutcome.DONE)] * len(batch)

    setattr(OpenSearchSink, "_bulk", once)


def _dropped_detail() -> None:
    put = Writer.put
    seen = count(1)

    async def putting(writer: Writer, item: Any) -> None:
        if isinstance(item, AttemptWrite):
            item = item._replace(device_records=[record for record in item.device_records if next(seen) % 10])
        await put(writer, item)

    setattr(Writer, "put", putting)


def _ids_from_offsets() -> None:
    verdicts = attempt_documents.device_document

    def by_offset(rows: Any, *how: Any) -> Document:
        made, origin = verdicts(rows, *how), rows.origin
        return Document(made.index, f"{origin.topic}-{origin.partition}-{origin.offset}", made.source, None, origin)

    setattr(attempt_documents, "device_document", by_offset)


def _one_node_short() -> None:
    table = node_table

    def short(records: Sequence[Any], tallies: Iterable[Any]) -> Any:
        made = table(records, list(tallies))
        last = slice(None, -1)
        return replace(made, **{name: getattr(made, name)[last] for name in PER_NODE})

    setattr(fold, "node_table", short)


def _binds_forgotten() -> None:
    add = OpenAttempts.add

    def adding(attempts: OpenAttempts, event: Any, *about: Any) -> Any:
        return None if isinstance(event, BindConcluded) else add(attempts, event, *about)

    setattr(OpenAttempts, "add", adding)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "acknowledge before the write": _acknowledge_before_the_write,
    "take": _take_batches,
    "concurrency 2": _two_agents_side_by_side,
    "random ids": _random_ids,
    "index by the time of writing": _index_by_the_time_of_writing,
    "no external version": _no_version,
    "lost conclusions": _lost_conclusions,
    "no dead letters": _no_dead_letters,
    "a failed request counts as written": _a_failed_request_counts_as_written,
    "dropped detail": _dropped_detail,
    "ids from offsets": _ids_from_offsets,
    "one node short": _one_node_short,
    "binds forgotten": _binds_forgotten,
}
