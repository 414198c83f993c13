"""Pages of waiting pods, which two lists answer: from the index, with what the nearest nodes lack from memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from api.handlers.listing import item_of
from api.http.cluster import Cluster
from api.http.errors import BadRequestError
from api.http.pagination import encode_token, parse_position
from api.http.param_types import parse_time
from api.index.reading.client import OpenSearch
from api.index.waiting.waiting_pods import (
    POSITIONS,
    FindNearest,
    build_pods_query,
    build_waiting_filters,
    sort_pods,
    to_waiting_pod,
)
from api.memory.cluster_devices import ClusterDevices
from api.memory.nearest_node import Lack, find_least_lacking
from schemas.answers.waiting import PodsWaiting, PodWaiting
from schemas.codec.records import format_rfc3339
from schemas.events import PodWait
from schemas.indices import POD_STATES


@dataclass(frozen=True, slots=True)
class AskedPods:
    """Which of the waiting pods are wanted, and how many of them."""

    values: Mapping[str, str | None]
    """Field of the documents to its value."""
    since: str
    """The latest attempt is not older than this time or duration, as the caller gives it."""
    min_wait: str | None = None
    order: str = "wait"
    limit: int = 0

    def query(self, cluster: str, since: str, at: datetime) -> dict[str, Any]:
        """The query for them, with the ``since`` that is kept from page to page. Raises ``BadRequestError``."""
        try:
            waits_since = format_rfc3339(parse_time(self.min_wait, at)) if self.min_wait else None
        except OverflowError:
            raise BadRequestError("min_wait: is longer than time is known", "Give a shorter one.") from None
        return build_waiting_filters(cluster, self.values, since, waits_since)


@dataclass(frozen=True, slots=True)
class WaitingPods:
    index: OpenSearch
    devices: ClusterDevices

    async def pods(self, cluster: Cluster, scope: dict[str, Any], token: str | None, asked: AskedPods) -> PodsWaiting:
        """A page of pods. Raises ``BadRequestError`` for a wrong token, ``UnreadableError`` and as of the index."""
        position_type = POSITIONS[asked.order]
        position = parse_position(token, scope, position_type)
        at = datetime.fromisoformat(position.at) if position else datetime.now(UTC)
        since = position.since if position else format_rfc3339(parse_time(asked.since, at))
        after, sort = position.sort if position else None, sort_pods(asked.order, at)
        body = build_pods_query(asked.query(cluster.name, since, at), after, asked.limit, sort)
        answer = await self.index.search(POD_STATES.alias, body)
        hits = answer["hits"]["hits"]
        page = hits[: asked.limit]
        next_token = None
        if len(hits) > len(page):
            behind = position_type(since=since, at=format_rfc3339(at), sort=tuple(page[-1]["sort"]))
            next_token = encode_token(scope, behind)
        items = await self.items(cluster, [page], at)
        return PodsWaiting.model_validate(
            {"total": answer["hits"]["total"]["value"], "items": items[0], "continue": next_token}
        )

    async def items(self, cluster: Cluster, groups: list[list[dict[str, Any]]], at: datetime) -> list[list[PodWaiting]]:
        """The pods of the hits of each group. Raises ``UnreadableError``."""
        # Held while the nodes are looked at: the search for suggestions changes the columns and puts them back.
        async with self.devices.lock:
            item = partial(to_waiting_pod, cluster, moment=at, find_nearest=self._nearest(cluster.name))
            return [[item_of(hit, item) for hit in hits] for hits in groups]

    def _nearest(self, cluster: str) -> FindNearest:
        columns = self.devices.find_columns(cluster)
        known: dict[str, Lack | None] = {}

        def find(wait: PodWait) -> Lack | None:
            if columns is None or wait.asked is None:
                return None
            # Most pods of a page ask for the same and are near to the same nodes.
            key = f"{wait.nearest_nodes} {wait.asked}"
            if key not in known:
                known[key] = find_least_lacking(columns, wait.nearest_nodes, wait.asked)
            return known[key]

        return find
