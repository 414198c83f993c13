"""The audits of placements beside the books: what they see, what they ask the index, what they find."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any, Final

from pipeline.placements import audit_queries
from pipeline.placements.input_decoder import BoundAttempt, Said
from pipeline.placements.occupancy_queries import PAGE
from pipeline.sinks.msearch import Hits, Search, Searchable, pages
from schemas.events import FindingReported, NodeChecked, NodeRegistered, PodObserved
from summaries.placement_audit import Placed, Pools, bind_unreported, placed_of
from summaries.placement_auditor import REMEMBERED, PlacementAuditor

UNTOLD_EVERY: Final = timedelta(minutes=1)
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


class Audits:
    def __init__(self, pools: Pools | None, index: Searchable) -> None:
        self._index, self._judge = index, PlacementAuditor(pools)
        self._chosen: dict[str, Placed] = {}
        """By id, attempts of the latest hour without a told bind."""
        self._asked = self._asked_until = _EPOCH

    async def recall(self, now: datetime) -> None:
        """Go on where an earlier run ended: what it wrote last it may not have judged."""
        (hits,) = await self._index.search([audit_queries.latest_stay()])
        since = min(audit_queries.began_last(hits) or now, now) - REMEMBERED
        async for hits in self._pages(lambda after: audit_queries.binds_since(since, after)):
            for placed in audit_queries.placed_in(hits):
                self._judge.see_bind(placed)
        async for hits in self._pages(lambda after: audit_queries.sightings_since(since, after)):
            for event in audit_queries.said_in(hits):
                self._see(event)
        self._asked_until = since

    def see(self, said: Said) -> None:
        if not isinstance(said, BoundAttempt):
            self._see(said)
        elif said.bind.bound:
            bind = said.bind
            self._judge.see_bind(placed_of(said, bind.node, bind.ended_at, said.picked_devices, said.requests))

    def _see(self, event: object) -> None:
        if isinstance(event, PodObserved):
            self._judge.see_pod(event)
        elif isinstance(event, NodeChecked | NodeRegistered):
            self._judge.see_node(event)

    async def find(self, until: datetime) -> list[FindingReported]:
        """What is wrong, now that all that came before ``until`` has been seen."""
        if nodes := sorted(self._judge.nodes_lacking(until)):
            answers = await self._index.search([each for node in nodes for each in audit_queries.checks_of(node)])
            for place, node in enumerate(nodes):
                hits = [hit for answer in answers[2 * place : 2 * place + 2] for hit in answer]
                said = audit_queries.said_in(hits)
                self._judge.load_node(node, (each for each in said if not isinstance(each, PodObserved)))
        found = self._judge.settle(until)
        if until - self._asked >= UNTOLD_EVERY:
            self._asked = until
            found += await self._untold(until)
        return found

    async def _untold(self, until: datetime) -> list[FindingReported]:
        """Pods on the nodes that were chosen for them, of which nobody has told a bind for a while."""
        since, self._asked_until = max(self._asked_until, until - REMEMBERED), until - audit_queries.UNTOLD_AFTER
        async for hits in self._pages(lambda after: audit_queries.chosen_without_bind(since, self._asked_until, after)):
            self._chosen |= {each.attempt_id: each for each in audit_queries.chosen_in(hits)}
        self._chosen = {id_: each for id_, each in self._chosen.items() if each.bound_at >= until - REMEMBERED}
        waiting = list(self._chosen.values())
        answers = await self._index.search([audit_queries.stays_on(each) for each in waiting]) if waiting else []
        seen = [
            (chosen, audit_queries.untold_on(chosen, hits, self._asked_until))
            for chosen, hits in zip(waiting, answers, strict=True)
        ]
        return [bind_unreported(chosen, sighting) for chosen, sighting in seen if sighting]

    def _pages(self, ask: Callable[[list[Any] | None], Search]) -> AsyncIterator[Hits]:
        return pages(self._index, PAGE, ask)
