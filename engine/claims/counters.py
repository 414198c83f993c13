"""Counters that devices of a pool share (DRAPartitionableDevices): what allocations leave, and what a search takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.claims.allocated import DeviceHolder
from engine.claims.inventory import Inventory
from engine.claims.slices import Counters, Pool, Slice, SliceDevice


@dataclass(frozen=True, slots=True)
class CounterShortage:
    """A counter of which a device needs more than is left. Amounts in billionths."""

    counter_set: str
    counter: str
    needed: int
    left: int
    users: tuple[DeviceHolder, ...] = ()
    """Claims that use the counter, where they were looked for."""


@dataclass(slots=True)
class CounterAvailability:
    """Amounts that the devices in use leave of the counters, by name of the pool.

    kube-scheduler remembers it for all nodes and does not tell pools of one name apart that belong to two drivers.
    """

    inventory: Inventory
    left_by_pool: dict[str, Counters] = field(default_factory=dict)

    def find_left(self, pool: Pool) -> Counters:
        """Return what is left of each counter, by set and counter; it may be less than nothing."""
        name = pool.id[1]
        left = self.left_by_pool.get(name)
        if left is None:
            left = self.left_by_pool[name] = self._subtract_used(pool)
        return left

    def _subtract_used(self, pool: Pool) -> Counters:
        left = {name: dict(counters) for name, counters in (pool.counter_sets or {}).items()}
        allocated = self.inventory.allocated
        for slice_ in (*pool.slices, *pool.other_slices):
            for device in () if slice_.is_plain else slice_.devices:
                if device.is_plain or not allocated.is_allocated((slice_.driver, slice_.pool, device.name)):
                    continue
                for name, counters in self.inventory.get_details(slice_, device).counters:
                    subtract(left.get(name, {}), counters)
        return left


def list_counter_users(inventory: Inventory, pool: Pool, shortage: CounterShortage) -> tuple[DeviceHolder, ...]:
    """List the claims whose devices use a counter of a pool, each once."""
    users: dict[str, DeviceHolder] = {}
    for slice_ in (*pool.slices, *pool.other_slices):
        for device in () if slice_.is_plain else slice_.devices:
            holder = None if device.is_plain else inventory.allocated.find_holder((*pool.id, device.name))
            if holder and _uses_counter(inventory, slice_, device, shortage):
                users.setdefault(holder.claim.title, holder)
    return tuple(users.values())


def _uses_counter(inventory: Inventory, slice_: Slice, device: SliceDevice, shortage: CounterShortage) -> bool:
    counters = inventory.get_details(slice_, device).counters
    return any(name == shortage.counter_set and shortage.counter in amounts for name, amounts in counters)


def subtract(left: dict[str, int], counters: Mapping[str, int]) -> None:
    """Subtract amounts from the counters of a set that have them."""
    for counter, amount in counters.items():
        if counter in left:
            left[counter] -= amount


class CounterLedger:
    """Counters that the devices of one search take."""

    __slots__ = ("_availability", "_inventory", "_taken")

    def __init__(self, inventory: Inventory, availability: CounterAvailability) -> None:
        """Begin with nothing taken."""
        self._inventory = inventory
        self._availability = availability
        self._taken: dict[str, dict[str, dict[str, int]]] = {}

    def reserve(self, pool: Pool, slice_: Slice, device: SliceDevice) -> CounterShortage | None:
        """Take what a device needs; if it is not there, take nothing and return the first shortage."""
        self._add(pool, slice_, device, 1)
        shortage = self._find_shortage(pool, slice_, device)
        if shortage:
            self._add(pool, slice_, device, -1)
        return shortage

    def release(self, pool: Pool, slice_: Slice, device: SliceDevice) -> None:
        """Give back what a device has taken."""
        self._add(pool, slice_, device, -1)

    def _add(self, pool: Pool, slice_: Slice, device: SliceDevice, sign: int) -> None:
        taken = self._taken.setdefault(pool.id[1], {})
        for name, counters in self._inventory.get_details(slice_, device).counters:
            amounts = taken.setdefault(name, {})
            for counter, amount in counters.items():
                amounts[counter] = amounts.get(counter, 0) + sign * amount

    def _find_shortage(self, pool: Pool, slice_: Slice, device: SliceDevice) -> CounterShortage | None:
        """Find a counter that is overdrawn, one that the device needs if there is one."""
        taken, needs = self._taken[pool.id[1]], self._add_up(slice_, device)
        shortages = [
            CounterShortage(name, counter, needs.get((name, counter), 0), amount - used + needs.get((name, counter), 0))
            for name, left in self._availability.find_left(pool).items()
            for counter, amount in left.items()
            if (used := taken.get(name, {}).get(counter, 0)) > amount
        ]
        return max(shortages, key=lambda shortage: bool(shortage.needed), default=None)

    def _add_up(self, slice_: Slice, device: SliceDevice) -> dict[tuple[str, str], int]:
        needs: dict[tuple[str, str], int] = {}
        for name, counters in self._inventory.get_details(slice_, device).counters:
            for counter, amount in counters.items():
                needs[name, counter] = needs.get((name, counter), 0) + amount
        return needs
