"""The schedulers of a cluster with their versions and settings, and how these changed. Pure."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Final

from api.index.reading.decoding import decode_document
from api.index.reading.query_dsl import all_of, of_cluster, sort_latest_first, term
from schemas.answers.nodes import SchedulerChange, SchedulerInstance, SchedulerListed, SettingChanged
from schemas.codec.records import Rejected, format_rfc3339, read
from schemas.events import SchedulerObserved
from schemas.json_types import Json

MAX_OBSERVATIONS: Final = 1_000


def schedulers_query(cluster: str) -> Json:
    """The body of a search for the latest observations of the cluster's schedulers."""
    return {
        "query": all_of([of_cluster(cluster), term("kind", "scheduler-observed")]),
        "sort": [sort_latest_first("@timestamp")],
        "size": MAX_OBSERVATIONS,
        "_source": ["event"],
        "track_total_hits": False,
    }


def schedulers_of(answer: Json) -> list[SchedulerListed]:
    """The schedulers in the answer to ``schedulers_query``, by name. Raises ``UnreadableError``."""
    events = [decode_document(_event, hit["_source"], hit["_id"]) for hit in answer["hits"]["hits"]]
    events.sort(key=lambda event: (event.scheduler, event.observed_at))
    return [_listed(list(observed)) for _, observed in groupby(events, key=lambda event: event.scheduler)]


def _event(source: Json) -> SchedulerObserved | Rejected:
    return read(SchedulerObserved, source.get("event"), "document.event")


def _listed(observed: Sequence[SchedulerObserved]) -> SchedulerListed:
    """One scheduler. ``observed``: earliest first."""
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
