"""A judged refusal as the records of an attempt: states of devices, device rows and node rows, each built once.

Equal pods share the records; an attempt takes a copy of each with its own head.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from engine.cases.refused_pods import DeviceShortage, RefusedPod, UnsuitableDevice, compare_counts
from engine.hami import quantities
from ingest.readers.kube.judged_kinds import RIGHTS
from ingest.readers.node_states import LoggedState, build_logged_state
from runtime.kubernetes.object_fields import get_text, iterate_objects
from schemas.codec.chunking import HEAD_BYTES, divide_refusals, divide_sizes
from schemas.codec.records import MAX_VALUE_BYTES
from schemas.events import (
    REFUSED,
    AttemptEvent,
    DeviceKind,
    DevicesJudged,
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
_MIB: Final = 1024 * 1024
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
    """Requests for devices of claims, by the containers that use them; empty for a pod without claims."""
    states: tuple[LoggedState, ...]
    devices: tuple[DevicesJudged, ...]
    nodes: tuple[NodesJudged, ...]

    @property
    def device_rows(self) -> int:
        """Number of rows of all device records."""
        return sum(len(record.verdict) for record in self.devices)

    def add_requests(self, requests: Sequence[Request]) -> list[Request]:
        """Add the devices of claims to the requests of the containers that use them and request no other devices."""
        claimed = {(request.container, request.init): request for request in self.requests}
        return [
            request if request.count else claimed.get((request.container, request.init), request)
            for request in requests
        ]

    def iterate_records(self, head: Mapping[str, Any]) -> Iterator[AttemptEvent]:
        """Iterate over the records of an attempt."""
        for record in (*self.devices, *self.nodes):
            yield record.model_copy(update=dict(head))

    def to_reconstruction(self, counts: Mapping[str, int], message: str) -> Reconstruction:
        """Convert to the origin of the verdicts, held against the scheduler's counts, or its words without any."""
        verdicts = self.verdicts
        return Reconstruction(
            agreement=compare_counts(verdicts, counts, message),
            counts=dict(verdicts.counts),
            passing_nodes=len(verdicts.passing),
            passing=sorted(verdicts.passing)[:MAX_PASSING],
            unread=sorted(RIGHTS.get(kind, kind) for kind in verdicts.missing_kinds),
        )


def build_refusal(verdicts: RefusedPod, pod: Json) -> JudgedRefusal:
    """Build the records of a judged pod."""
    users = _find_users(pod)
    states = {name: _build_state(name, shortage) for name, shortage in verdicts.shortages.items()}
    return JudgedRefusal(
        verdicts=verdicts,
        requests=tuple(_list_requests(verdicts, users)),
        states=tuple(states.values()),
        devices=tuple(_build_device_records(verdicts, states, users)),
        nodes=tuple(_build_node_records(verdicts, users)),
    )


@dataclass(frozen=True, slots=True)
class _ClaimUsers:
    """Containers of a pod, and the position of the first one that uses each claim."""

    containers: list[tuple[str, bool]]
    """Name, and True for an init container; init containers first, as in an attempt's requests."""
    positions: Mapping[str, int]
    """By the claim's name in the cluster."""

    def find_position(self, shortage: DeviceShortage) -> int:
        return self.positions.get(shortage.claim.rpartition("/")[2], 0)

    def to_request(self, shortage: DeviceShortage) -> Request:
        container, is_init = self.containers[self.find_position(shortage)] if self.containers else ("", False)
        return Request(container=container, init=is_init, vendor=shortage.class_name, count=shortage.wanted or 1)


def _find_users(pod: Json) -> _ClaimUsers:
    generated = {
        get_text(status, "name"): get_text(status, "resourceClaimName")
        for status in iterate_objects(pod, "status", "resourceClaimStatuses")
    }
    names = {
        get_text(entry, "name"): get_text(entry, "resourceClaimName") or generated.get(get_text(entry, "name"), "")
        for entry in iterate_objects(pod, "spec", "resourceClaims")
    }
    containers = [
        (container, kind == "initContainers")
        for kind in ("initContainers", "containers")
        for container in iterate_objects(pod, "spec", kind)
    ]
    positions: dict[str, int] = {}
    for position, (container, _) in enumerate(containers):
        for used in iterate_objects(container, "resources", "claims"):
            positions.setdefault(names.get(get_text(used, "name"), ""), position)
    return _ClaimUsers([(get_text(container, "name"), is_init) for container, is_init in containers], positions)


def _list_requests(verdicts: RefusedPod, users: _ClaimUsers) -> list[Request]:
    """List the requests that some node cannot meet, one for each container."""
    requests = {users.find_position(shortage): users.to_request(shortage) for shortage in verdicts.shortages.values()}
    return [request for _, request in sorted(requests.items())]


def _build_state(node: str, shortage: DeviceShortage) -> LoggedState:
    kinds: dict[tuple[str, str, int | None], int] = {}
    kind = [kinds.setdefault(_describe_kind(device), len(kinds)) for device in shortage.devices]
    table = [DeviceKind(model=model, vendor=driver, memory_mib=memory, slots=1) for model, driver, memory in kinds]
    used = [int(device.is_held) for device in shortage.devices]
    return build_logged_state(
        node, [_name_device(device) for device in shortage.devices], table, kind=kind, slots_used=used
    )


def _name_device(device: UnsuitableDevice) -> str:
    return "/".join(device.id)


def _describe_kind(device: UnsuitableDevice) -> tuple[str, str, int | None]:
    """Describe a device by its model, driver and memory, as far as its driver publishes them."""
    attributes, capacity = device.device.attributes, device.device.capacity
    model = next(
        (get_text(value, "string") for name, value in attributes.items() if _is_named(name, "productName")), ""
    )
    amount = next((value for name, value in capacity.items() if _is_named(name, "memory")), None)
    memory = quantities.parse_whole(amount.get("value")) if isinstance(amount, Mapping) else None
    return model, device.id[0], None if memory is None else memory // _MIB


def _is_named(name: str, wanted: str) -> bool:
    # Names of attributes and capacities may have their driver before them.
    return name.rpartition("/")[2] == wanted


def _build_device_records(
    verdicts: RefusedPod, states: Mapping[str, LoggedState], users: _ClaimUsers
) -> Iterator[DevicesJudged]:
    part = 0
    for (position, request), names in _group_by_request(verdicts, users).items():
        sizes = [len(verdicts.shortages[name].devices) * _ROW_BYTES + len(name) + _NODE_BYTES for name in names]
        for run in divide_sizes(np.array(sizes, dtype=np.int64)):
            columns = _build_device_columns([verdicts.shortages[name] for name in names[run]])
            revisions = [states[name].revision for name in names[run]]
            yield DevicesJudged(
                **_UNSET, part=part, container=position, request=Request.model_validate_json(request), nodes=names[run],
                revision=revisions, **columns,
            )  # fmt: skip
            part += 1


def _group_by_request(verdicts: RefusedPod, users: _ClaimUsers) -> dict[tuple[int, str], list[str]]:
    groups: dict[tuple[int, str], list[str]] = {}
    for name in sorted(verdicts.shortages):
        shortage = verdicts.shortages[name]
        key = users.find_position(shortage), users.to_request(shortage).model_dump_json()
        groups.setdefault(key, []).append(name)
    return groups


def _build_device_columns(shortages: Sequence[DeviceShortage]) -> dict[str, Any]:
    rows = [device.reason.value for shortage in shortages for device in shortage.devices]
    table = {reason: code for code, reason in enumerate(sorted(set(rows)))}
    counts = [len(shortage.devices) for shortage in shortages]
    models = Counter(_describe_kind(device)[0] for shortage in shortages for device in shortage.devices)
    return {
        "models": {model: count for model, count in models.items() if model},
        "verdicts": list(table),
        "devices": counts,
        "rows": counts,
        "verdict": [table[reason] for reason in rows],
    }


def _build_node_records(verdicts: RefusedPod, users: _ClaimUsers) -> Iterator[NodesJudged]:
    names = sorted(verdicts.reasons)
    if not names:
        return
    refusals = {name: _build_refusal(verdicts, name) for name in names}
    table = {_encode(refusal): refusal for refusal in refusals.values()}
    codes = {key: code for code, key in enumerate(table)}
    refusal = np.array([codes[_encode(refusals[name])] for name in names], dtype=np.int64)
    sizes = np.array([len(name.encode()) + _NODE_BYTES for name in names], dtype=np.int64)
    runs = divide_refusals(sizes, list(table.values()), refusal, MAX_VALUE_BYTES - HEAD_BYTES)
    for part, run in enumerate(runs):
        used, column = np.unique(refusal[run], return_inverse=True)
        yield NodesJudged(
            **_UNSET, part=part, containers=[name for name, _ in users.containers] or [""], verdicts=[REFUSED],
            refusals=[list(table.values())[code] for code in used.tolist()], nodes=names[run],
            verdict=[0] * len(names[run]), score=[0.0] * len(names[run]),
            refused_by=[_find_refused(verdicts, users, name) for name in names[run]], refusal=column.tolist(),
        )  # fmt: skip


def _find_refused(verdicts: RefusedPod, users: _ClaimUsers, node: str) -> int:
    shortage = verdicts.shortages.get(node)
    return users.find_position(shortage) if shortage else -1


def _build_refusal(verdicts: RefusedPod, node: str) -> Refusal:
    if shortage := verdicts.shortages.get(node):
        counts = Counter(device.reason.value for device in shortage.devices)
        return Refusal(counts=dict(sorted(counts.items())), devices=len(shortage.devices))
    reasons = verdicts.reasons[node]
    return Refusal(bare=reasons[0]) if len(reasons) == 1 else Refusal(uncounted=list(reasons))


def _encode(refusal: Refusal) -> tuple[Any, ...]:
    return refusal.bare, refusal.devices, tuple(refusal.uncounted), tuple(refusal.counts.items())
