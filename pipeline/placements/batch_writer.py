"""A batch of records: what is not at hand is asked of the index, what follows is written, what is wrong is told.

Records may be acknowledged when ``take`` has returned. Taken again, they change nothing.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from pipeline.dead_letters.codec import Source, dead_letter
from pipeline.placements import occupancy_queries
from pipeline.placements.audits import Audits
from pipeline.placements.device_holdings import KEPT
from pipeline.placements.input_decoder import Said, said_in
from pipeline.placements.metrics import Metrics
from pipeline.placements.occupancy_queries import Stored
from pipeline.placements.occupancy_state import Book, Origin, PodKey, Thing, thing_of
from pipeline.sinks.bulk import Document
from pipeline.sinks.findings import finding_write
from pipeline.sinks.kafka import TopicsSink
from pipeline.sinks.msearch import Search, pages
from pipeline.sinks.opensearch import OpenSearchSink
from schemas.codec.records import Rejected
from schemas.events import FindingReported

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 500
"""Things that the index is asked for in one go."""
_REMEMBERED: Final = 100_000
"""Findings of which it is known that they are told."""


class _Taken(NamedTuple):
    said: Said
    record: Source


class Keeper:
    def __init__(self, book: Book, audits: Audits, index: OpenSearchSink, topics: TopicsSink, metrics: Metrics) -> None:
        self._book, self._audits, self._index, self._topics, self._metrics = book, audits, index, topics, metrics
        self._told: OrderedDict[str, None] = OrderedDict()

    async def open(self, now: datetime) -> None:
        """Who holds devices, as the index knows it. What is loaded is judged again: an earlier run may not have."""
        found: list[Stored] = []
        async for hits in pages(
            self._index, occupancy_queries.PAGE, lambda after: occupancy_queries.holdings_since(now - KEPT, after)
        ):
            found += occupancy_queries.stored(hits)
        self._book.load_holdings(found)
        await self._audits.recall(now)
        logger.info("%d pods hold devices", len(self._book.ledger))

    async def take(self, records: Iterable[Any]) -> None:
        """Return when all that follows from the records (of aiokafka) stands in the index and on the topics."""
        now = datetime.now(UTC)
        taken = [each for record in records if (each := await self._read(record, now))]
        for each in taken:
            self._audits.see(each.said)
        while taken:
            await self._load({thing_of(each.said) for each in taken})
            documents: dict[tuple[str, str], Document] = {}
            for said, record in taken:
                for document in self._book.take(said, now, record):
                    # Of two tellings in one batch the index needs the last one only.
                    documents[document.index, document.id] = document
            contested = await self._write(list(documents.values()))
            taken = [each for each in taken if thing_of(each.said) in contested]
        self._book.trim()

    async def _read(self, record: Any, now: datetime) -> _Taken | None:
        said = said_in(record.value, record.headers, now)
        outcome = "rejected" if isinstance(said, Rejected) else "taken" if said else "passed_over"
        self._metrics.records.labels(record.topic, outcome).inc()
        if isinstance(said, Rejected):
            await self._set_aside(record, str(said))
            return None
        return _Taken(said, record) if said else None

    async def _set_aside(self, record: Source, cause: str) -> None:
        logger.warning("%s[%d]@%d: %.500s", record.topic, record.partition, record.offset, cause)
        await self._topics.send([dead_letter(record, cause, datetime.now(UTC))])

    async def _load(self, things: set[Thing]) -> None:
        lacking = iter([each for each in things if self._book.lacks(each)])
        while some := list(islice(lacking, _AT_ONCE)):
            pods = [each for each in some if isinstance(each, PodKey)]
            nodes = [each for each in some if isinstance(each, str)]
            await self._load_pods(pods)
            await self._load_nodes(nodes)

    async def _load_pods(self, pods: Sequence[PodKey]) -> None:
        asked: list[Search] = []
        for pod in pods:
            asked += [occupancy_queries.stays_of_pod(*pod), occupancy_queries.observations_of_pod(*pod)]
        answers = await self._index.search(asked) if asked else []
        for place, pod in enumerate(pods):
            stays, seen = answers[2 * place : 2 * place + 2]
            self._book.load_pod(pod, occupancy_queries.stored(stays), occupancy_queries.observed(seen))
        self._metrics.loaded.labels("pod").inc(len(pods))

    async def _load_nodes(self, nodes: Sequence[str]) -> None:
        asked = [occupancy_queries.observations_of_node(node) for node in nodes]
        answers = await self._index.search([each for of_node in asked for each in of_node]) if asked else []
        for node, of_node in zip(nodes, asked, strict=True):
            hits = [hit for answer in answers[: len(of_node)] for hit in answer]
            answers = answers[len(of_node) :]
            self._book.load_node(node, occupancy_queries.observed(hits))
        self._metrics.loaded.labels("node").inc(len(nodes))

    async def _write(self, documents: Sequence[Document]) -> set[Thing]:
        """Pods that somebody else has written about: they are to be read and taken again."""
        contested: set[Thing] = set()
        # One after the other: what is gone from one document stands in another one before.
        for is_gone in (False, True):
            written = await self._index.write([each for each in documents if each.is_deletion is is_gone])
            for document, cause in written.refused:
                record: Any = document.origin.record
                await self._set_aside(record, f"the index refuses document {document.id}: {cause}")
            contested |= {document.origin.thing for document in written.conflicts if document.version is not None}
        if contested:
            logger.warning("somebody else writes about %d pods: is another of these processes running?", len(contested))
            self._book.forget(contested)
            self._index.forget()
        return contested

    async def audit(self, until: datetime) -> None:
        """Tell what is wrong, once; all that happened before ``until`` has been taken."""
        await self._load(set(self._book.nodes_to_load()))
        wrong = [*self._book.judge(until), *await self._audits.find(until)]
        found = {each.id: each for each in wrong if each.id not in self._told}
        if found:
            await self._tell(found)

    async def _tell(self, found: dict[str, FindingReported]) -> None:
        (hits,) = await self._index.search([occupancy_queries.told_findings(list(found))])
        known = {hit["_id"] for hit in hits}
        new = [each for id_, each in found.items() if id_ not in known]
        places = [finding_write(each, origin=Origin(None, "")) for each in new]
        await self._topics.send([outgoing for _, outgoing in places])
        # Last: what stands in the index is taken for told.
        await self._index.write([document for document, _ in places])
        for each in new:
            self._metrics.findings.labels(each.finding).inc()
            logger.info("%s on %s of %s: %s", each.finding, each.node, each.device, "; ".join(each.evidence)[:500])
        self._told.update(dict.fromkeys(found))
        while len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
