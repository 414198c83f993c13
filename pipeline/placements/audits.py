"""Audits of placements: compare several records, earlier ones from the index too, to find what can't be right."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any, Final

from engine.summaries.node_history import NodeKey
from engine.summaries.placement_audit import Placed, Pools, report_unreported_bind, to_placed
from engine.summaries.placement_auditor import REMEMBERED, PlacementAuditor
from pipeline.placements import audit_queries
from pipeline.placements.input_decoder import BoundAttempt, PlacementInput
from pipeline.placements.occupancy_queries import PAGE
from pipeline.sinks.msearch import Hits, Search, Searchable, iterate_pages
from schemas.events import FindingReported, NodeChecked, NodeRegistered, PodObserved

UNREPORTED_EVERY: Final = timedelta(minutes=1)
"""Pause between two searches for unreported binds. They are minutes old anyway, and each search costs the index."""
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00Z")


class PlacementAudits:
    """Runner of the audits, which are pure themselves, in ``engine.summaries``. ``find`` returns new findings."""

    def __init__(self, pools: Pools | None, index: Searchable) -> None:
        self._index, self._auditor = index, PlacementAuditor(pools)
        self._without_bind: dict[str, Placed] = {}
        """Attempts of the latest hour whose filter chose a node and whose bind is not reported, by id."""
        self._searched_at = self._searched_until = _EPOCH

    async def load(self, now: datetime) -> None:
        """Load what an earlier run wrote: it may have been killed before it audited the latest of it."""
        (hits,) = await self._index.search([audit_queries.search_latest_placement()])
        # From the latest placement and not from now: the process may have been down for days, and continues where it
        # ended.
        since = min(audit_queries.decode_latest_start(hits) or now, now) - REMEMBERED
        async for hits in self._iterate_pages(lambda after: audit_queries.search_binds(since, after)):
            for placed in audit_queries.decode_binds(hits):
                self._auditor.see_bind(placed)
        async for hits in self._iterate_pages(lambda after: audit_queries.search_sightings(since, after)):
            for event in audit_queries.decode_observations(hits):
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
        """Find new findings; all inputs before ``until`` have been observed."""
        if nodes := sorted(self._auditor.list_unloaded_nodes(until)):
            await self._load_nodes(nodes)
        # Only now: the checks that were loaded decide about the placements that are due.
        findings = self._auditor.settle(until)
        if until - self._searched_at >= UNREPORTED_EVERY:
            self._searched_at = until
            findings += await self._find_unreported_binds(until)
        return findings

    async def _load_nodes(self, nodes: list[NodeKey]) -> None:
        searches = [(node, search) for node in nodes for search in audit_queries.search_checks(node)]
        answers = await self._index.search([search for _, search in searches])
        events: dict[NodeKey, list[NodeChecked | NodeRegistered]] = {node: [] for node in nodes}
        for (node, _), hits in zip(searches, answers, strict=True):
            observations = audit_queries.decode_observations(hits)
            events[node] += [event for event in observations if not isinstance(event, PodObserved)]
        for node in nodes:
            self._auditor.load_node(node, events[node])

    async def _find_unreported_binds(self, until: datetime) -> list[FindingReported]:
        """Find pods that run on their chosen node although no bind was reported for some time."""
        # Each search begins where the one before ended: attempts in between were not old enough yet to be reported.
        since = max(self._searched_until, until - REMEMBERED)
        self._searched_until = until - audit_queries.BIND_REPORT_TIMEOUT
        searched_until = self._searched_until
        async for hits in self._iterate_pages(
            lambda after: audit_queries.search_chosen_without_bind(since, searched_until, after)
        ):
            self._without_bind |= {chosen.attempt_id: chosen for chosen in audit_queries.decode_chosen(hits)}
        # An attempt leaves after an hour, reported or not: the finding has the same id each time and is published once.
        self._without_bind = {
            id_: chosen for id_, chosen in self._without_bind.items() if chosen.bound_at >= until - REMEMBERED
        }
        waiting = list(self._without_bind.values())
        searches = [audit_queries.search_placements_on_chosen(chosen) for chosen in waiting]
        answers = await self._index.search(searches) if searches else []
        sightings = [
            (chosen, audit_queries.find_sighting_without_bind(chosen, hits, searched_until))
            for chosen, hits in zip(waiting, answers, strict=True)
        ]
        return [report_unreported_bind(chosen, sighting) for chosen, sighting in sightings if sighting]

    def _iterate_pages(self, search_after: Callable[[list[Any] | None], Search]) -> AsyncIterator[Hits]:
        return iterate_pages(self._index, PAGE, search_after)
