"""Pods that hold each device, and the devices to check because a holder or the device changed. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.summaries.node_history import NodeKey
from engine.summaries.occupancy import DerivedPlacement
from engine.summaries.overcommit import MIN_OVERLAP, Holding
from pipeline.placements.subjects import PodKey
from schemas.placements import PodPlacement

KEPT_AFTER_END: Final = timedelta(hours=1)
"""Records may arrive this late and still be compared with a placement that has ended."""


class DeviceKey(NamedTuple):
    node: NodeKey
    uuid: str


class DeviceHoldings:
    """Placements with devices, by device and by pod."""

    def __init__(self) -> None:
        self._by_node: defaultdict[NodeKey, dict[str, dict[str, Holding]]] = defaultdict(dict)
        """Holdings by node, device and id of the placement."""
        self._by_pod: dict[PodKey, list[Holding]] = {}
        self._changed: dict[DeviceKey, datetime] = {}
        """Devices to check, each with the latest start of a placement or total that has not been checked."""

    def __contains__(self, pod: PodKey) -> bool:
        return pod in self._by_pod

    def __len__(self) -> int:
        """Count the placements with devices that have not ended."""
        # Metrics read this in another thread, while placements come and go: hence the copy.
        return sum(holding.placement.ended_at is None for held in list(self._by_pod.values()) for holding in held)

    def put(self, pod: PodKey, holdings: Iterable[Holding]) -> None:
        """Replace all placements of the pods of that name. Mark devices of new or changed ones to be checked."""
        before = self._by_pod.get(pod, [])
        # A placement without devices can't overcommit one.
        now = [holding for holding in holdings if holding.placement.allocations]
        # First, since the devices of a placement may have changed: what is left of the old ones would be held by no
        # pod.
        if before:
            self._drop(pod)
        if now:
            self._by_pod[pod] = now
        for holding in now:
            for device in _list_devices(holding):
                self._by_node[device.node].setdefault(device.uuid, {})[holding.placement.id] = holding
                # The same holdings are put again when a pod is loaded; only new or changed ones need a check.
                if holding not in before:
                    self._mark_changed(device, holding.placement.started_at)

    def list_present(self, node: NodeKey) -> list[PodPlacement]:
        """List the placements that hold devices of a node now."""
        by_id = {
            holding.placement.id: holding.placement
            for holdings in self._by_node.get(node, {}).values()
            for holding in holdings.values()
        }
        return [placement for placement in by_id.values() if placement.ended_at is None]

    def note_node_change(self, node: NodeKey, happened_at: datetime) -> None:
        """Mark all held devices of the node to be checked: it registered other devices, or other totals, at that
        time."""
        for uuid in self._by_node.get(node, ()):
            self._mark_changed(DeviceKey(node, uuid), happened_at)

    def _mark_changed(self, device: DeviceKey, happened_at: datetime) -> None:
        self._changed[device] = max(happened_at, self._changed.get(device, happened_at))

    def list_nodes_to_check(self) -> set[NodeKey]:
        return {device.node for device in self._changed}

    def take_changed(self, until: datetime) -> Iterator[tuple[DeviceKey, list[Holding]]]:
        """Take the devices to check, with all their holdings. All inputs before ``until`` have been applied.

        A device whose latest change is too recent to be judged by then is returned again by the next call.
        """
        for device, changed_at in list(self._changed.items()):
            yield device, list(self._by_node.get(device.node, {}).get(device.uuid, {}).values())
            # Before that the overlap may still turn out to be too short to count.
            if changed_at + MIN_OVERLAP <= until:
                del self._changed[device]

    def forget_ended(self, until: datetime) -> None:
        """Drop pods whose placements ended long before ``until``, unless one of their devices is to be checked."""
        for pod, held in list(self._by_pod.items()):
            has_ended = all(
                holding.placement.ended_at and holding.placement.ended_at + KEPT_AFTER_END < until for holding in held
            )
            if has_ended and not any(device in self._changed for holding in held for device in _list_devices(holding)):
                self._drop(pod)

    def _drop(self, pod: PodKey) -> None:
        for holding in self._by_pod.pop(pod):
            for device in _list_devices(holding):
                of_node = self._by_node[device.node]
                of_node[device.uuid].pop(holding.placement.id, None)
                if not of_node[device.uuid]:
                    del of_node[device.uuid]


def _list_devices(holding: Holding) -> set[DeviceKey]:
    placement = holding.placement
    node = NodeKey(placement.cluster, placement.node)
    return {DeviceKey(node, allocation.uuid) for allocation in placement.allocations}


def derive_holdings(placements: Iterable[DerivedPlacement]) -> list[Holding]:
    """Derive the holdings of placements, each from the attempt on that bound it."""
    # Without a bind it is what the pod itself says that it holds.
    return [
        Holding(derived.placement, derived.bind.started_at if derived.bind else derived.placement.started_at)
        for derived in placements
    ]
