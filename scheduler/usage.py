"""What one pod holds of each device, from its annotations and status (HAMi's `getNodesUsage`, `initContainer.go`).

App containers run side by side, so their shares add up. Init containers run before them, one after the other, so per
device the biggest counts. A pod holds the larger of the two, and only the app containers' part once every init
container has succeeded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler import allocation
from scheduler.allocation import Held, MigAllocation
from scheduler.mig import Placement

_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """The effective share of one device: MiB, percent of a card, slots, and where on a MIG card."""

    memory_mib: int
    cores: int
    slots: int
    placements: tuple[Placement, ...] = ()


@dataclass(frozen=True, slots=True)
class PodUse:
    """What one pod holds: on its node per device, and in its namespace in all (MiB, percent of cards)."""

    node: str
    namespace: str
    by_uuid: Mapping[str, DeviceUse]
    memory_mib: int
    cores: int


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Succeeded and failed pods hold nothing, even where their annotations still stand."""
    return _mapping(pod.get("status")).get("phase") in _ENDED


def pod_use(pod: Mapping[str, Any]) -> PodUse | None:
    """What the pod's annotations say it holds; None for a pod that was never placed by this kind of scheduler.

    Raises AllocationError where the device annotation can't be read.
    """
    metadata = _mapping(pod.get("metadata"))
    annotations = _mapping(metadata.get("annotations"))
    node = annotations.get(allocation.NODE)
    if not isinstance(node, str):
        return None
    namespace = metadata.get("namespace")
    containers = allocation.decode_devices(_text(annotations, allocation.ALLOCATED))
    return use_of(
        node,
        namespace if isinstance(namespace, str) else "",
        containers,
        _mig_allocations(annotations),
        init_containers=_init_count(pod),
        init_done=_init_succeeded(pod),
    )


def use_of(
    node: str,
    namespace: str,
    containers: Sequence[Sequence[Held]],
    mig: Sequence[MigAllocation],
    *,
    init_containers: int,
    init_done: bool,
) -> PodUse:
    """Fold what each container holds into what the pod holds; the first `init_containers` are init containers."""
    first_app = min(init_containers, len(containers))
    init = [] if init_done else [held for container in containers[:first_app] for held in container]
    apps = [held for container in containers[first_app:] for held in container]
    placed = [row for row in mig if not init_done or row.container >= first_app]
    uuids = dict.fromkeys(held.uuid for held in (*init, *apps))
    by_uuid = {
        uuid: _device_use(
            [held for held in init if held.uuid == uuid],
            [held for held in apps if held.uuid == uuid],
            tuple(row.placement for row in placed if row.uuid == uuid),
        )
        for uuid in uuids
    }
    init_totals = [_totals(container) for container in containers[:first_app]] if not init_done else []
    totals = [*init_totals, _totals(apps)]
    return PodUse(node, namespace, by_uuid, max(total[0] for total in totals), max(total[1] for total in totals))


def _device_use(init: list[Held], apps: list[Held], placements: tuple[Placement, ...]) -> DeviceUse:
    memory_mib, cores = _totals(apps)
    return DeviceUse(
        max(memory_mib, *(held.memory_mib for held in init)) if init else memory_mib,
        max(cores, *(held.cores for held in init)) if init else cores,
        max(len(apps), 1),
        placements,
    )


def _totals(held: Iterable[Held]) -> tuple[int, int]:
    rows = list(held)
    return sum(row.memory_mib for row in rows), sum(row.cores for row in rows)


def _init_count(pod: Mapping[str, Any]) -> int:
    listed = _mapping(pod.get("spec")).get("initContainers")
    return len(listed) if isinstance(listed, list) else 0


def _init_succeeded(pod: Mapping[str, Any]) -> bool:
    statuses = _mapping(pod.get("status")).get("initContainerStatuses")
    ended = [_exit_code(status) for status in statuses] if isinstance(statuses, list) else []
    return 0 < _init_count(pod) <= len(ended) and all(code == 0 for code in ended)


def _exit_code(status: Any) -> Any:
    return _mapping(_mapping(_mapping(status).get("state")).get("terminated")).get("exitCode")


def _mig_allocations(annotations: Mapping[str, Any]) -> tuple[MigAllocation, ...]:
    """Unreadable placements count as none: the shares themselves stand in the device annotation."""
    try:
        return allocation.decode_mig(_text(annotations, allocation.MIG_ALLOCATIONS))
    except allocation.AllocationError:
        return ()


def _text(annotations: Mapping[str, Any], key: str) -> str:
    value = annotations.get(key, "")
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
