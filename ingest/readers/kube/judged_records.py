"""A judged refusal as the records of an attempt: states of devices, device rows and node rows, each built once.

Equal pods share the records; an attempt takes a copy of each with its own head.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from engine.cases.refused_pods import RefusedPod, compare_counts
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.texts import write_sentence
from engine.summaries.named_pods import hide_other_pods
from ingest.readers.kube.device_rows import Containers, DeviceRows, build_device_rows, read_containers
from ingest.readers.kube.judged_kinds import RIGHTS
from ingest.readers.node_states import LoggedState, build_logged_state
from schemas.codec.chunking import HEAD_BYTES, divide_refusals, divide_sizes
from schemas.codec.records import MAX_VALUE_BYTES
from schemas.events import (
    REFUSED,
    AttemptEvent,
    DevicesJudged,
    JudgedObstacle,
    NodesJudged,
    PodRef,
    Reconstruction,
    Refusal,
    Request,
)
from schemas.json_types import Json

MAX_PASSING: Final = 10
"""Limit of the passing nodes that are named."""
_ROW_BYTES: Final = 8
_NODE_BYTES: Final = 64
_UNSET: Final[Mapping[str, Any]] = {
    "cluster": "unset", "attempt_id": "unset", "pod": PodRef(namespace="unset", name="unset"), "scheduler": "",
    "started_at": datetime(1970, 1, 1, tzinfo=UTC),
}  # fmt: skip
"""Head of records that belong to no attempt yet."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRefusal:
    """Verdicts on a refused pod, and their records without the head of an attempt."""

    verdicts: RefusedPod
    requests: tuple[Request, ...]
    """Requests for devices of claims or for parts of devices, by container; empty for a pod without any."""
    states: tuple[LoggedState, ...]
    devices: tuple[DevicesJudged, ...]
    nodes: tuple[NodesJudged, ...]

    @property
    def device_rows(self) -> int:
        """Number of rows of all device records."""
        return sum(len(record.verdict) for record in self.devices)

    def add_requests(self, requests: Sequence[Request]) -> list[Request]:
        """Add the judged devices to the requests of the containers that use them and request no other devices."""
        claimed = {(request.container, request.init): request for request in self.requests}
        return [
            request if request.count else claimed.get((request.container, request.init), request)
            for request in requests
        ]

    def iterate_records(self, head: Mapping[str, Any]) -> Iterator[AttemptEvent]:
        """Iterate over the records of an attempt."""
        for record in (*self.devices, *self.nodes):
            yield record.model_copy(update=dict(head))

    def is_proved_by(self, counts: Mapping[str, int], message: str) -> bool:
        """Tell whether the scheduler counted what these verdicts count."""
        return compare_counts(self.verdicts, counts, message) == "equal"

    def to_reconstruction(self, counts: Mapping[str, int], message: str, namespace: str) -> Reconstruction:
        """Convert to the origin of the verdicts, held against the scheduler's counts, or its words without any."""
        verdicts = self.verdicts
        agreement = compare_counts(verdicts, counts, message)
        return Reconstruction(
            agreement=agreement,
            counts=dict(verdicts.counts),
            passing_nodes=len(verdicts.passing),
            passing=sorted(verdicts.passing)[:MAX_PASSING],
            unread=sorted(RIGHTS.get(kind, kind) for kind in verdicts.missing_kinds),
            obstacle=_to_judged_obstacle(verdicts.obstacle, namespace)
            if verdicts.obstacle and agreement == "equal"
            else None,
        )


def _to_judged_obstacle(obstacle: FoundObstacle | None, namespace: str) -> JudgedObstacle | None:
    if obstacle is None:
        return None
    # The sentence is shown to everybody who may see the pod.
    sentence = write_sentence(obstacle)
    return JudgedObstacle(
        code=obstacle.code,
        sentence_en=hide_other_pods(sentence.en, namespace),
        sentence_zh=hide_other_pods(sentence.zh, namespace),
    )


def build_refusal(verdicts: RefusedPod, pod: Json) -> JudgedRefusal:
    """Build the records of a judged pod."""
    containers = read_containers(pod)
    rows = build_device_rows(verdicts, pod, containers)
    states = {name: _build_state(name, node_rows) for name, node_rows in rows.items() if node_rows.names}
    return JudgedRefusal(
        verdicts=verdicts,
        requests=tuple(_list_requests(rows)),
        states=tuple(states.values()),
        devices=tuple(_build_device_records(rows, states)),
        nodes=tuple(_build_node_records(verdicts, rows, containers)),
    )


def _list_requests(rows: Mapping[str, DeviceRows]) -> list[Request]:
    """List the requests that some node cannot meet, one for each container."""
    requests = {node_rows.position: node_rows.request for node_rows in rows.values()}
    return [request for _, request in sorted(requests.items())]


def _build_state(node: str, rows: DeviceRows) -> LoggedState:
    table = {kind.model_dump_json(): kind for kind in rows.kinds}
    codes = {key: code for code, key in enumerate(table)}
    kind = [codes[entry.model_dump_json()] for entry in rows.kinds]
    return build_logged_state(node, rows.names, list(table.values()), kind=kind, **rows.used)


def _build_device_records(rows: Mapping[str, DeviceRows], states: Mapping[str, LoggedState]) -> Iterator[DevicesJudged]:
    part = 0
    for (position, request), names in _group_by_request(rows, states).items():
        sizes = [len(rows[name].names) * _ROW_BYTES + len(name) + _NODE_BYTES for name in names]
        for run in divide_sizes(np.array(sizes, dtype=np.int64)):
            columns = _build_device_columns([rows[name] for name in names[run]])
            revisions = [states[name].revision for name in names[run]]
            yield DevicesJudged(
                **_UNSET, part=part, container=position, request=Request.model_validate_json(request), nodes=names[run],
                revision=revisions, **columns,
            )  # fmt: skip
            part += 1


def _group_by_request(
    rows: Mapping[str, DeviceRows], states: Mapping[str, LoggedState]
) -> dict[tuple[int, str], list[str]]:
    groups: dict[tuple[int, str], list[str]] = {}
    for name in sorted(states):
        key = rows[name].position, rows[name].request.model_dump_json()
        groups.setdefault(key, []).append(name)
    return groups


def _build_device_columns(rows: Sequence[DeviceRows]) -> dict[str, Any]:
    verdicts = [verdict for node_rows in rows for verdict in node_rows.verdicts]
    table = {verdict: code for code, verdict in enumerate(sorted(set(verdicts)))}
    counts = [len(node_rows.names) for node_rows in rows]
    models = Counter(kind.model for node_rows in rows for kind in node_rows.kinds)
    return {
        "models": {model: count for model, count in models.items() if model},
        "verdicts": list(table),
        "devices": counts,
        "rows": counts,
        "verdict": [table[verdict] for verdict in verdicts],
    }


def _build_node_records(
    verdicts: RefusedPod, rows: Mapping[str, DeviceRows], containers: Containers
) -> Iterator[NodesJudged]:
    names = sorted(verdicts.reasons)
    if not names:
        return
    refusals = {name: rows[name].refusal if name in rows else _build_bare(verdicts.reasons[name]) for name in names}
    table = {_encode(refusal): refusal for refusal in refusals.values()}
    codes = {key: code for code, key in enumerate(table)}
    refusal = np.array([codes[_encode(refusals[name])] for name in names], dtype=np.int64)
    sizes = np.array([len(name.encode()) + _NODE_BYTES for name in names], dtype=np.int64)
    runs = divide_refusals(sizes, list(table.values()), refusal, MAX_VALUE_BYTES - HEAD_BYTES)
    for part, run in enumerate(runs):
        used, column = np.unique(refusal[run], return_inverse=True)
        yield NodesJudged(
            **_UNSET, part=part, containers=[name for name, _ in containers] or [""], verdicts=[REFUSED],
            refusals=[list(table.values())[code] for code in used.tolist()], nodes=names[run],
            verdict=[0] * len(names[run]), score=[0.0] * len(names[run]),
            refused_by=[rows[name].position if name in rows else -1 for name in names[run]], refusal=column.tolist(),
        )  # fmt: skip


def _build_bare(reasons: Sequence[str]) -> Refusal:
    return Refusal(bare=reasons[0]) if len(reasons) == 1 else Refusal(uncounted=list(reasons))


def _encode(refusal: Refusal) -> tuple[Any, ...]:
    return refusal.bare, refusal.devices, tuple(refusal.uncounted), tuple(refusal.counts.items())
