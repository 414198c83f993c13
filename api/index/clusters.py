"""Clusters with records in the index, and their schedulers with versions, settings and changes of these.

And the release of HAMi of each cluster, as its scheduler's log or our own scheduler's settings report it.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Final

from api.http.cluster import CLUSTER
from api.index.reading.pages import decode_document
from api.index.reading.query_dsl import combine, match_cluster, match_term, sort_latest_first
from engine.hami.releases import HamiRelease, parse_release
from schemas.answers.nodes import ClusterFound, SchedulerChange, SchedulerInstance, SchedulerListed, SettingChanged
from schemas.codec.records import Rejected, format_rfc3339, read
from schemas.events import SchedulerObserved
from schemas.indices import ATTEMPTS, OBSERVATIONS
from schemas.json_types import Json

CLUSTERS_ALIASES: Final = f"{ATTEMPTS.alias},{OBSERVATIONS.alias}"
"""Indices with decisions, and with observations of clusters without decisions."""
_MAX_CLUSTERS: Final = 1_000


def build_clusters_query() -> Json:
    """Build the search for the names of all clusters with the times of their first and last records."""
    times = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    by_name = {"terms": {"field": "cluster", "size": _MAX_CLUSTERS, "order": {"_key": "asc"}}, "aggs": times}
    return {"size": 0, "track_total_hits": False, "aggs": {"clusters": by_name}}


def parse_clusters(answer: Json, default_cluster: str) -> list[ClusterFound]:
    """Parse the answer to ``build_clusters_query``, by name. It has the default cluster even without records."""
    buckets = answer.get("aggregations", {}).get("clusters", {}).get("buckets", [])
    last = {bucket["key"]: str(bucket["last"]["value_as_string"]) for bucket in buckets}
    first = {bucket["key"]: str(bucket["first"]["value_as_string"]) for bucket in buckets}
    return [
        ClusterFound(
            name=name,
            is_default=name == default_cluster,
            first_record_at=first.get(name),
            last_record_at=last.get(name),
            path=CLUSTER.format(cluster=name),
        )
        for name in sorted({default_cluster, *last})
    ]


MAX_OBSERVATIONS: Final = 1_000


def build_schedulers_query(cluster: str) -> Json:
    """Build the search for the latest observations of the cluster's schedulers."""
    return _build_observations_query([match_cluster(cluster)])


def _build_observations_query(filters: Sequence[Json]) -> Json:
    return {
        "query": combine([*filters, match_term("kind", "scheduler-observed")]),
        "sort": [sort_latest_first("@timestamp")],
        "size": MAX_OBSERVATIONS,
        "_source": ["event"],
        "track_total_hits": False,
    }


def parse_schedulers(answer: Json) -> list[SchedulerListed]:
    """Parse the schedulers in the answer to ``build_schedulers_query``, by name. Raises ``UnreadableError``."""
    events = [decode_document(_decode_event, hit["_source"], hit["_id"]) for hit in answer["hits"]["hits"]]
    events.sort(key=lambda event: (event.scheduler, event.observed_at))
    return [_to_listed_scheduler(list(observed)) for _, observed in groupby(events, key=lambda event: event.scheduler)]


def _decode_event(source: Json) -> SchedulerObserved | Rejected:
    return read(SchedulerObserved, source.get("event"), "document.event")


def _to_listed_scheduler(observed: Sequence[SchedulerObserved]) -> SchedulerListed:
    """Convert the observations of one scheduler, earliest first, into an item of the answer."""
    latest = observed[-1]
    instances = {event.instance: event for event in observed}
    changes = [_change(before, after) for before, after in pairwise(observed) if _differ(before, after)]
    return SchedulerListed(
        scheduler=latest.scheduler,
        implementation=latest.implementation,
        version=latest.version,
        settings=latest.settings,
        settings_digest=latest.settings_digest,
        observed_at=format_rfc3339(latest.observed_at),
        instances=[
            SchedulerInstance(
                instance=event.instance,
                observed_at=format_rfc3339(event.observed_at),
                version=event.version,
                settings_digest=event.settings_digest,
            )
            for event in sorted(instances.values(), key=lambda event: event.observed_at, reverse=True)
        ],
        changes=changes[::-1],
    )


def _differ(before: SchedulerObserved, after: SchedulerObserved) -> bool:
    return (before.version, before.settings) != (after.version, after.settings)


def _change(before: SchedulerObserved, after: SchedulerObserved) -> SchedulerChange:
    names = sorted(before.settings.keys() | after.settings.keys())
    return SchedulerChange(
        observed_at=format_rfc3339(after.observed_at),
        instance=after.instance,
        version_before=before.version,
        version=after.version,
        settings=[
            SettingChanged(setting=name, before=before.settings.get(name), after=after.settings.get(name))
            for name in names
            if before.settings.get(name) != after.settings.get(name)
        ],
    )


async def read_releases(search: Callable[[str, Json], Awaitable[Json]]) -> dict[str, HamiRelease]:
    """Read the latest release of each cluster that reports one. ``search``: of the index; its errors are raised."""
    answer = await search(OBSERVATIONS.alias, _build_observations_query([]))
    events = (_decode_event(hit["_source"]) for hit in answer["hits"]["hits"])
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
