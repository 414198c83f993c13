"""Releases of HAMi by cluster, as its scheduler's log or our own scheduler's settings report them."""

from collections.abc import Iterable
from typing import Final

from api.index.reading.client import OpenSearch
from api.index.reading.query_dsl import match_term, sort_latest_first
from engine.hami.releases import HamiRelease, parse_release
from schemas.codec.records import Rejected, read
from schemas.events import SchedulerObserved
from schemas.indices import OBSERVATIONS
from schemas.json_types import Json

_LATEST_OBSERVATIONS: Final[Json] = {
    "query": {"bool": {"filter": [match_term("kind", "scheduler-observed")]}},
    "sort": [sort_latest_first("@timestamp")],
    "size": 1_000,
    "_source": ["event"],
    "track_total_hits": False,
}


async def read_releases(index: OpenSearch) -> dict[str, HamiRelease]:
    """Read the latest release of each cluster that reports one. Raises ``IndexDownError``, ``IndexRefusedError``."""
    answer = await index.search(OBSERVATIONS.alias, _LATEST_OBSERVATIONS)
    events = (read(SchedulerObserved, hit["_source"].get("event"), "document.event") for hit in answer["hits"]["hits"])
    return choose_releases(event for event in events if not isinstance(event, Rejected))


def choose_releases(observed: Iterable[SchedulerObserved]) -> dict[str, HamiRelease]:
    """Choose the release of each cluster from observations, the latest first."""
    releases: dict[str, HamiRelease] = {}
    for event in observed:
        # Our scheduler decides by the rules of the release that its flag names.
        version = event.version if event.implementation == "HAMi" else event.settings.get("hami-version", "")
        if release := parse_release(version.partition("-")[0]):
            releases.setdefault(event.cluster, release)
    return releases
