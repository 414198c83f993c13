"""Finds placements that can't be right, where several records have to be compared, earlier ones from the index too."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any, Final

from engine.summaries.node_history import NodeKey
from engine.summaries.placement_audit import Placed, Pools, report_unreported_bind, to_placed
from engine.summaries.placement_auditor import REMEMBERED, PlacementAuditor
from pipeline.placements import audit_queries
from pipeline.placements.input_decoder import BoundAttempt, PlacementInput
from pipeline.placements.occupancy_queries import PAGE
from pipeline.sinks.msearch import Hits, Search, Searchable, pages
from schemas.events import FindingReported, NodeChecked, NodeRegistered, PodObserved

UNREPORTED_EVERY: Final = timedelta(minutes=1)
"""Pause between two searches for unreported binds. They are minutes old anyway, and each search costs the index."""
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


class PlacementAudits:
    """``find`` returns new findings; the audits themselves are pure, in ``summaries``."""

    def __init__(self, pools: Pools | None, index: Searchable) -> None:
        self._index, self._auditor = index, PlacementAuditor(pools)
        self._without_bind: dict[str, Placed] = {}
        """By attempt id: attempts of the latest hour whose filter chose a node and whose bind is not reported."""
        self._searched_at = self._searched_until = _EPOCH

    async def load(self, now: datetime) -> None:
        """Load what an earlier run wrote: it may have been killed before it audited the latest of it."""
        (hits,) = await self._index.search([audit_queries.latest_placement()])
        # From the latest placement and not from now: the process may have been down for days, and continues where it
        # ended.
        since = min(audit_queries.latest_start(hits) or now, now) - REMEMBERED
        async for hits in self._pages(lambda after: audit_queries.binds_since(since, after)):
            for placed in audit_queries.binds_in(hits):
                self._auditor.see_bind(placed)
        async for hits in self._pages(lambda after: audit_queries.sightings_since(since, after)):
            for event in audit_queries.observations_in(hits):
                self._observe_event(event)
        self._searched_until = since

    def observe(self, item: PlacementInput) -> None:
        if not isinstance(item, BoundAttempt):
            self._observe_event(item)
        elif item.bind.bound:
            bind = item.bind
            self._auditor.see_bind(to_placed(item, bind.node, bind.ended_at, item.picked_devices, item.requests))

    def _observe_event(self, event: object) -> None:
        if isinstance(event, PodObserved):
            self._auditor.see_pod(event)
        elif isinstance(event, NodeChecked | NodeRegistered):
            self._auditor.see_node(event)

    async def find(self, until: datetime) -> list[FindingReported]:
        """New findings; all inputs before ``until`` have been observed."""
        if nodes := sorted(self._auditor.list_unloaded_nodes(until)):
            await self._load_nodes(nodes)
        # Only now: the checks that were loaded decide about the placements that are due.
        found = self._auditor.settle(until)
        if until - self._searched_at >= UNREPORTED_EVERY:
            self._searched_at = until
            found += await self._unreported_binds(until)
        return found

    async def _load_nodes(self, nodes: list[NodeKey]) -> None:
        searches = [(node, search) for node in nodes for search in audit_queries.checks_of(node)]
        answers = await self._index.search([search for _, search in searches])
        events: dict[NodeKey, list[NodeChecked | NodeRegistered]] = {node: [] for node in nodes}
        for (node, _), hits in zip(searches, answers, strict=True):
            found = audit_queries.observations_in(hits)
            events[node] += [event for event in found if not isinstance(event, PodObserved)]
        for node in nodes:
            self._auditor.load_node(node, events[node])

    async def _unreported_binds(self, until: datetime) -> list[FindingReported]:
        """Findings about pods that run on their chosen node although no bind was reported for some time."""
        # Each search begins where the one before ended: attempts in between were not old enough yet to be reported.
        since = max(self._searched_until, until - REMEMBERED)
        self._searched_until = until - audit_queries.BIND_REPORT_TIMEOUT
        searched_until = self._searched_until
        async for hits in self._pages(lambda after: audit_queries.chosen_without_bind(since, searched_until, after)):
            self._without_bind |= {chosen.attempt_id: chosen for chosen in audit_queries.chosen_in(hits)}
        # An attempt leaves after an hour, reported or not: the finding has the same id each time and is published once.
        self._without_bind = {
            id_: chosen for id_, chosen in self._without_bind.items() if chosen.bound_at >= until - REMEMBERED
        }
        waiting = list(self._without_bind.values())
        searches = [audit_queries.placements_on_chosen(chosen) for chosen in waiting]
        answers = await self._index.search(searches) if searches else []
        sightings = [
            (chosen, audit_queries.sighting_without_bind(chosen, hits, searched_until))
            for chosen, hits in zip(waiting, answers, strict=True)
        ]
        return [report_unreported_bind(chosen, sighting) for chosen, sighting in sightings if sighting]

    def _pages(self, search_after: Callable[[list[Any] | None], Search]) -> AsyncIterator[Hits]:
        return pages(self._index, PAGE, search_after)
