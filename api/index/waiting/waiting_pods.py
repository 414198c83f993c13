"""Pods that wait now, from their latest states, in pages; and workloads that could not create their pods. Pure.

A pod's name and the beginning of its wait do not change while it waits.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic import FiniteFloat

from api.http.cluster import Cluster
from api.http.pagination import Position
from api.http.param_types import Milliseconds, MomentText
from api.index.reading.pages import decode_document
from api.index.reading.query_dsl import (
    combine,
    match_cluster,
    match_term,
    match_terms,
    match_time_range,
    match_tried_since,
    sort_by,
    sort_latest_first,
)
from engine.diagnosis.layer_waits import find_layer_of_code
from schemas.answers.diagnosis import InBothLanguages, Layer
from schemas.answers.waiting import MainObstacle, NearestNode, PodWaiting, WorkloadBlocked
from schemas.codec.records import Rejected, read
from schemas.documents.pod_states import WAITING
from schemas.events import PodWait, WorkloadObserved
from schemas.json_types import Json

TRIED_WITHIN: Final = timedelta(hours=1)
"""Time after its last attempt for which a pod counts as waiting: later it may be deleted (docs/api.md)."""
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
    """Beginning of a page of waiting pods. ``SortValues`` has one value for each entry of ``sort_pods``."""

    since: MomentText
    """Start in RFC 3339: the first page resolves a duration, and later pages keep its time."""
    at: MomentText
    """Time of the first page in RFC 3339, until which all pages count waits."""
    sort: SortValues
    """Sort values of the last pod of the page before."""


_BY_NUMBER: Final = PodsPosition[tuple[Milliseconds, Milliseconds, str, str]]
POSITIONS: Final[dict[str, type[PodsPosition[Any]]]] = {
    "wait": PodsPosition[tuple[Milliseconds, str, str]],
    "gpu_hours": PodsPosition[tuple[FiniteFloat, Milliseconds, str, str]],
    "devices": _BY_NUMBER,
    "attempts": _BY_NUMBER,
    "name": PodsPosition[tuple[str, str]],
}
"""Order of the pods to the position of a page."""


class LackOfNode(Protocol):
    """Shortfall of a node now."""

    @property
    def node(self) -> str: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def cores_percent(self) -> int: ...


FindNearest = Callable[[PodWait], LackOfNode | None]
"""Finds which of an attempt's nearest nodes lacks least now; None if that is unknown."""


def build_waiting_filters(
    cluster: str, values: Mapping[str, str | None], since: str, waits_since: str | None = None
) -> Json:
    """Build the query for waiting pods that were tried after ``since``, or never. ``values``: field to its value.

    ``waits_since`` (RFC 3339): only pods that were first judged before it.
    """
    clauses = [match_cluster(cluster), match_term("state", WAITING), *match_terms(values)]
    of_time = [match_tried_since(since), *match_time_range("first_judged_at", None, waits_since)]
    return combine([*clauses, *of_time])


def build_device_milliseconds_script(moment: datetime) -> Json:
    """Build the script that multiplies a pod's devices by the milliseconds of its wait."""
    # Not stored, because it changes with the time; ``params`` keeps the compiled script the same.
    return {"source": _DEVICE_MILLISECONDS, "lang": "painless", "params": {"at": int(moment.timestamp() * 1000)}}


def sort_pods(order: str, moment: datetime) -> list[Json]:
    """Sort by ``wait``, ``gpu_hours``, ``devices``, ``attempts`` or ``name``, then by values that no two pods share."""
    if order == "name":
        return [sort_by("namespace"), sort_by("pod")]
    if order == "gpu_hours":
        by_script = {"type": "number", "order": "desc", "script": build_device_milliseconds_script(moment)}
        return [{"_script": by_script}, *LONGEST_WAIT]
    first = {"wait": [], "devices": [sort_by("asked_devices", "desc", "long")]}
    return [*first.get(order, [sort_by("attempts", "desc", "long")]), *LONGEST_WAIT]


def build_pods_query(
    query: Json, after: Sequence[float | str] | None, limit: int, sort: Sequence[Json] = LONGEST_WAIT
) -> Json:
    """Build the search for a page of pods and one pod more."""
    body = {"query": query, "sort": sort, "size": limit + 1, "_source": FIELDS, "track_total_hits": True}
    return body | ({"search_after": list(after)} if after else {})


def to_waiting_pod(
    cluster: Cluster, hit: Json, moment: datetime | None = None, find_nearest: FindNearest = lambda _: None
) -> PodWaiting:
    """Convert a hit into an item. Raises ``KeyError`` and ``ValidationError`` for a document that is not ours.

    ``moment``: end of its wait; by default its latest attempt.
    """
    source: Json = hit["_source"]
    namespace, name = source["namespace"], source["pod"]
    wait = PodWait.model_validate(source["wait"]) if source.get("wait") else None
    waited = (moment or datetime.fromisoformat(source["@timestamp"])) - datetime.fromisoformat(
        source["first_judged_at"]
    )
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
        attempt=cluster.link_attempt(source["attempt_id"]) if source.get("attempt_id") else "",
        # A workload without pods has no schedulerlog.
        schedulerlog="" if "/" in name else cluster.link_schedulerlog(namespace, name),
        waited_seconds=seconds,
        devices=wait.devices if wait else None,
        gpu_hours=round(wait.devices * seconds / 3600, 3) if wait else None,
        obstacle=_to_main_obstacle(wait) if wait else None,
        layer=_find_layer(wait) if wait else None,
        nearest=_to_nearest(wait, find_nearest) if wait else None,
        models=wait.models if wait else [],
        pools=wait.pools if wait else [],
    )


def _find_layer(wait: PodWait) -> Layer | None:
    """Find the layer of a wait; by the code of the obstacle where an older worker has not written it."""
    layer: Layer | None = wait.layer or find_layer_of_code(wait.code)  # type: ignore[assignment]
    return layer


def _to_main_obstacle(wait: PodWait) -> MainObstacle | None:
    sentence = InBothLanguages(en=wait.sentence_en, zh=wait.sentence_zh)
    return MainObstacle(code=wait.code, sentence=sentence) if wait.code else None


def _to_nearest(wait: PodWait, find_nearest: FindNearest) -> NearestNode | None:
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


MAX_BLOCKED: Final = 1_000
"""Maximum number of reports of workloads that could not create pods, the latest ones."""


def build_blocked_query(cluster: str, values: Mapping[str, str | None], since: str) -> Json:
    """Build the search for workloads that could not create pods after ``since``. ``values``: field to its value."""
    clauses = [match_cluster(cluster), match_term("kind", "workload-observed"), *match_terms(values)]
    return {
        "query": combine([*clauses, *match_time_range("@timestamp", since, None)]),
        "sort": [sort_latest_first("@timestamp")],
        "size": MAX_BLOCKED,
        "_source": ["event"],
        "track_total_hits": False,
    }


def parse_blocked(answer: Json) -> list[WorkloadBlocked]:
    """Parse each workload in the answer to ``build_blocked_query``, with its problem. Raises ``UnreadableError``."""
    events = [decode_document(_decode_workload_event, hit["_source"], hit["_id"]) for hit in answer["hits"]["hits"]]
    latest: dict[tuple[str, str], WorkloadObserved] = {}
    # A workload whose wait is observed is a row among the pods, or has pods by now.
    listed = {(event.namespace, str(event.workload)) for event in events if event.wait or event.is_over}
    for event in events:
        if (key := (event.namespace, str(event.workload))) not in listed:
            latest.setdefault(key, event)
    return [
        WorkloadBlocked(namespace=namespace, workload=workload, problem=event.problem)
        for (namespace, workload), event in latest.items()
    ]


def _decode_workload_event(source: Json) -> WorkloadObserved | Rejected:
    return read(WorkloadObserved, source.get("event"), "document.event")
