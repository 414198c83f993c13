"""Which pods wait now, from the latest state of each: a page of them.

Since when a pod waits, and its name, do not change while it waits.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic import FiniteFloat

from api.http.cluster import Cluster
from api.http.pagination import Position
from api.http.param_types import Milliseconds, MomentText
from api.index.reading.query_dsl import all_of, of_cluster, sort_by, term, term_filters, time_range
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.waiting import MainObstacle, NearestNode, PodWaiting
from schemas.documents.pod_states import WAITING
from schemas.events import PodWait
from schemas.json_types import Json

FIELDS: Final = [
    "@timestamp", "attempt_id", "namespace", "pod", "pod_uid", "scheduler", "status", "reasons", "workload",
    "pod_group", "queue", "priority_class", "created_at", "first_judged_at", "attempts", "wait",
]  # fmt: skip
LONGEST_WAIT: Final = [sort_by("first_judged_at", "asc", "date"), sort_by("namespace"), sort_by("pod")]
_DEVICE_MILLISECONDS: Final = """
if (!doc.containsKey('asked_devices') || doc['asked_devices'].size() == 0 || doc['first_judged_at'].size() == 0) {
  return 0;
}
return doc['asked_devices'].value * (params.at - doc['first_judged_at'].value.toInstant().toEpochMilli());
"""


SortValues = TypeVar("SortValues", bound=tuple[float | str, ...])


class PodsPosition(Position, Generic[SortValues]):
    """Where a page of waiting pods begins. ``SortValues`` has one value for each entry of ``pod_sort``."""

    since: MomentText
    """RFC 3339: a duration is resolved at the first page and stays what it was then."""
    at: MomentText
    """RFC 3339: when the first page was asked for. How long pods have waited is as of then on all pages."""
    sort: SortValues
    """The sort values of the last pod of the page before."""


_BY_NUMBER: Final = PodsPosition[tuple[Milliseconds, Milliseconds, str, str]]
POSITIONS: Final[dict[str, type[PodsPosition[Any]]]] = {
    "wait": PodsPosition[tuple[Milliseconds, str, str]],
    "gpu_hours": PodsPosition[tuple[FiniteFloat, Milliseconds, str, str]],
    "devices": _BY_NUMBER,
    "attempts": _BY_NUMBER,
    "name": PodsPosition[tuple[str, str]],
}
"""The position of a page by the order of the pods."""


class LackOfNode(Protocol):
    """What a node lacks now."""

    @property
    def node(self) -> str: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def cores_percent(self) -> int: ...


FindNearest = Callable[[PodWait], LackOfNode | None]
"""Which of the nearest nodes by an attempt lacks least now; None where that is not known."""


def waiting_filters(cluster: str, values: Mapping[str, str | None], since: str, waits_since: str | None = None) -> Json:
    """The query for pods that wait and were tried since then. ``values``: field to its value.

    ``waits_since`` (RFC 3339): only pods that were first judged before it.
    """
    clauses = [of_cluster(cluster), term("state", WAITING), *term_filters(values)]
    of_time = [*time_range("@timestamp", since, None), *time_range("first_judged_at", None, waits_since)]
    return all_of([*clauses, *of_time])


def device_milliseconds(at: datetime) -> Json:
    """The script that gives, of a pod, its devices times the milliseconds that it has waited."""
    # Not stored, because it changes with the time; ``params`` keeps the compiled script the same.
    return {"source": _DEVICE_MILLISECONDS, "lang": "painless", "params": {"at": int(at.timestamp() * 1000)}}


def pod_sort(order: str, at: datetime) -> list[Json]:
    """By ``wait``, ``gpu_hours``, ``devices``, ``attempts`` or ``name``, then by what no two pods share."""
    if order == "name":
        return [sort_by("namespace"), sort_by("pod")]
    if order == "gpu_hours":
        by_script = {"type": "number", "order": "desc", "script": device_milliseconds(at)}
        return [{"_script": by_script}, *LONGEST_WAIT]
    first = {"wait": [], "devices": [sort_by("asked_devices", "desc", "long")]}
    return [*first.get(order, [sort_by("attempts", "desc", "long")]), *LONGEST_WAIT]


def pods_query(
    query: Json, after: Sequence[float | str] | None, limit: int, sort: Sequence[Json] = LONGEST_WAIT
) -> Json:
    """The body of a search for a page of pods and one pod more."""
    body = {"query": query, "sort": sort, "size": limit + 1, "_source": FIELDS, "track_total_hits": True}
    return body | ({"search_after": list(after)} if after else {})


def pod_waiting(
    cluster: Cluster, hit: Json, at: datetime | None = None, find_nearest: FindNearest = lambda _: None
) -> PodWaiting:
    """A hit as an item. Raises ``KeyError`` and ``ValidationError`` for a document that is not ours.

    ``at``: until when it has waited; until its latest attempt without it.
    """
    source: Json = hit["_source"]
    namespace, name = source["namespace"], source["pod"]
    wait = PodWait.model_validate(source["wait"]) if source.get("wait") else None
    waited = (at or datetime.fromisoformat(source["@timestamp"])) - datetime.fromisoformat(source["first_judged_at"])
    seconds = max(int(waited.total_seconds()), 0)
    return PodWaiting(
        namespace=namespace,
        name=name,
        pod_uid=source.get("pod_uid") or "",
        scheduler=source["scheduler"],
        status=source["status"],
        reasons=source.get("reasons") or [],
        workload=source.get("workload") or "",
        pod_group=source.get("pod_group") or "",
        queue=source.get("queue") or "",
        priority_class=source.get("priority_class") or "",
        created_at=source.get("created_at"),
        first_judged_at=source["first_judged_at"],
        last_judged_at=source["@timestamp"],
        attempts=source.get("attempts"),
        attempt=cluster.link_attempt(source["attempt_id"]),
        schedulerlog=cluster.link_schedulerlog(namespace, name),
        waited_seconds=seconds,
        devices=wait.devices if wait else None,
        gpu_hours=round(wait.devices * seconds / 3600, 3) if wait else None,
        obstacle=_main_obstacle(wait) if wait else None,
        nearest=_nearest(wait, find_nearest) if wait else None,
        models=wait.models if wait else [],
        pools=wait.pools if wait else [],
    )


def _main_obstacle(wait: PodWait) -> MainObstacle | None:
    sentence = InBothLanguages(en=wait.sentence_en, zh=wait.sentence_zh)
    return MainObstacle(code=wait.code, sentence=sentence) if wait.code else None


def _nearest(wait: PodWait, find_nearest: FindNearest) -> NearestNode | None:
    if not wait.nearest_nodes:
        return None
    lack = find_nearest(wait)
    return NearestNode(
        node=lack.node if lack else wait.nearest_nodes[0],
        reasons=wait.reasons,
        missing_devices=wait.missing_devices,
        missing_memory_mib=lack.memory_mib if lack else None,
        missing_cores_percent=lack.cores_percent if lack else None,
    )
