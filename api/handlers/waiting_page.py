"""Pages of waiting pods, for two lists: from the index, with the shortfall of the nearest nodes from memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from api.handlers.listing import convert_hit
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
class PodSelection:
    """Selection of waiting pods."""

    values: Mapping[str, str | None]
    """Field of the documents to its value."""
    since: str
    """Earliest time or greatest age of the latest attempt, as in the request."""
    min_wait: str | None = None
    order: str = "wait"
    limit: int = 0

    def build_query(self, cluster: str, since: str, moment: datetime) -> dict[str, Any]:
        """Build the query, with the ``since`` that all pages share. Raises ``BadRequestError``."""
        try:
            waits_since = format_rfc3339(parse_time(self.min_wait, moment)) if self.min_wait else None
        except OverflowError:
            raise BadRequestError("min_wait: is longer than time is known", "Give a shorter one.") from None
        return build_waiting_filters(cluster, self.values, since, waits_since)


@dataclass(frozen=True, slots=True)
class PendingList:
    index: OpenSearch
    devices: ClusterDevices

    async def read_page(
        self, cluster: Cluster, scope: dict[str, Any], token: str | None, selection: PodSelection
    ) -> PodsWaiting:
        """Read a page of pods. Raises ``BadRequestError`` for a wrong token, ``UnreadableError`` and as the index."""
        position_type = POSITIONS[selection.order]
        position = parse_position(token, scope, position_type)
        moment = datetime.fromisoformat(position.at) if position else datetime.now(UTC)
        since = position.since if position else format_rfc3339(parse_time(selection.since, moment))
        after, sort = position.sort if position else None, sort_pods(selection.order, moment)
        body = build_pods_query(selection.build_query(cluster.name, since, moment), after, selection.limit, sort)
        answer = await self.index.search(POD_STATES.alias, body)
        hits = answer["hits"]["hits"]
        page = hits[: selection.limit]
        next_token = None
        if len(hits) > len(page):
            behind = position_type(since=since, at=format_rfc3339(moment), sort=tuple(page[-1]["sort"]))
            next_token = encode_token(scope, behind)
        items = await self.convert_hits(cluster, [page], moment)
        return PodsWaiting.model_validate(
            {"total": answer["hits"]["total"]["value"], "items": items[0], "continue": next_token}
        )

    async def convert_hits(
        self, cluster: Cluster, groups: list[list[dict[str, Any]]], moment: datetime
    ) -> list[list[PodWaiting]]:
        """Convert the hits of each group into pods. Raises ``UnreadableError``."""
        # Under the lock, because the search for suggestions changes the columns and restores them.
        async with self.devices.lock:
            item = partial(
                to_waiting_pod, cluster, moment=moment, find_nearest=self._prepare_find_nearest(cluster.name)
            )
            return [[convert_hit(hit, item) for hit in hits] for hits in groups]

    def _prepare_find_nearest(self, cluster: str) -> FindNearest:
        columns = self.devices.find_columns(cluster)
        lacks: dict[str, Lack | None] = {}

        def find(wait: PodWait) -> Lack | None:
            if columns is None or wait.asked is None:
                return None
            # Most pods of a page have the same request and the same nearest nodes.
            key = f"{wait.nearest_nodes} {wait.asked}"
            if key not in lacks:
                lacks[key] = find_least_lacking(columns, wait.nearest_nodes, wait.asked)
            return lacks[key]

        return find
