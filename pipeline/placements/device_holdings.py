"""Who holds which device, and which devices have to be looked at because somebody came, went, or the device changed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from summaries.overcommit import LASTS, Holding

KEPT: Final = timedelta(hours=1)
"""So long after its end a stay may still matter to what is read late."""


class Device(NamedTuple):
    node: str
    uuid: str


class Ledger:
    """Stays with devices, by device and by pod (``namespace/name``)."""

    def __init__(self) -> None:
        self._by_node: defaultdict[str, dict[str, dict[str, Holding]]] = defaultdict(dict)
        self._by_pod: dict[str, list[Holding]] = {}
        self._changed: dict[Device, datetime] = {}
        """When the last of what has to be looked at begins."""

    def __contains__(self, pod: str) -> bool:
        return pod in self._by_pod

    def __len__(self) -> int:
        """Stays that go on."""
        return sum(each.placement.ended_at is None for held in list(self._by_pod.values()) for each in held)

    def put(self, pod: str, holdings: Iterable[Holding]) -> None:
        """These are all stays of the pods of that name; where they differ from what was known, devices have changed."""
        before = self._by_pod.get(pod, [])
        now = [each for each in holdings if each.placement.allocations]
        if before:
            self._drop(pod)
        if now:
            self._by_pod[pod] = now
        for each in now:
            for device in _devices(each):
                self._by_node[device.node].setdefault(device.uuid, {})[each.placement.id] = each
                if each not in before:
                    self._look_later(device, each.placement.started_at)

    def changed(self, node: str, at: datetime) -> None:
        """The node's devices became others then."""
        for uuid in self._by_node.get(node, ()):
            self._look_later(Device(node, uuid), at)

    def _look_later(self, device: Device, at: datetime) -> None:
        self._changed[device] = max(at, self._changed.get(device, at))

    def nodes_to_look_at(self) -> set[str]:
        return {device.node for device in self._changed}

    def look_at(self, until: datetime) -> Iterator[tuple[Device, list[Holding]]]:
        """Devices to be judged, as far as all is known ``until`` then; those of which more has begun come again."""
        for device, last in list(self._changed.items()):
            yield device, list(self._by_node.get(device.node, {}).get(device.uuid, {}).values())
            if last + LASTS <= until:
                del self._changed[device]

    def forget(self, until: datetime) -> None:
        """Stays that were over long before then, unless one of their devices waits to be looked at."""
        for pod, held in list(self._by_pod.items()):
            is_over = all(each.placement.ended_at and each.placement.ended_at + KEPT < until for each in held)
            if is_over and not any(device in self._changed for each in held for device in _devices(each)):
                self._drop(pod)

    def _drop(self, pod: str) -> None:
        for each in self._by_pod.pop(pod):
            for device in _devices(each):
                there = self._by_node[device.node]
                there[device.uuid].pop(each.placement.id, None)
                if not there[device.uuid]:
                    del there[device.uuid]


def _devices(holding: Holding) -> set[Device]:
    return {Device(holding.placement.node, each.uuid) for each in holding.placement.allocations}
