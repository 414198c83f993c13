"""Pools of devices that a node reaches: which slices count, and whether a pool is complete and valid.

Rules of kube-scheduler 1.36: only the slices of the highest generation that concern the node count. A pool of which
slices are missing is incomplete, and no device is taken from it. A pool that a newer generation replaces elsewhere is
outdated, and ignored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from engine.claims.device_details import read_counter_sets
from engine.claims.inventory import Inventory
from engine.claims.slices import Pool, PoolId, PoolState, Slice, SliceDevice
from engine.snapshot.fields import FieldError
from engine.snapshot.nodes import Node
from engine.snapshot.selectors import NodeSelector

_NO_COUNTERS: Final[Mapping[str, Mapping[str, int]]] = {}


def collect_pools(inventory: Inventory, node: Node) -> tuple[Pool, ...]:
    """Collect the pools of a node, in the order in which devices are taken from them; outdated ones at the end.

    Raises FieldError if a device has a malformed field that decides.
    """
    remembered = inventory.pools.get(node.name)
    if remembered is None or remembered[0] is not node:
        remembered = inventory.pools[node.name] = node, _build_pools(inventory, node)
    return remembered[1]


def _build_pools(inventory: Inventory, node: Node) -> tuple[Pool, ...]:
    of_node = inventory.slices.on_node.get(node.name, ())
    if len(of_node) == 1 and not inventory.slices.shared and _is_whole_pool(of_node[0]):
        # The most frequent case: each driver has a pool for each node, and few drivers have devices that nodes share.
        first = of_node[0]
        return (Pool(first.pool_id, PoolState.USABLE, of_node, of_node, (), _NO_COUNTERS, first.generation, 1, 1),)
    slices_by_pool: dict[PoolId, list[Slice]] = {}
    for slice_ in of_node:
        slices_by_pool.setdefault((slice_.driver, slice_.pool), []).append(slice_)
    for slice_ in inventory.slices.shared:
        if is_relevant(inventory, slice_, node):
            slices_by_pool.setdefault((slice_.driver, slice_.pool), []).append(slice_)
    pools = [_build_pool(inventory, pool_id, slices) for pool_id, slices in slices_by_pool.items()]
    return tuple(sorted(pools, key=lambda pool: _rank(inventory, pool)) if len(pools) > 1 else pools)


def _is_whole_pool(slice_: Slice) -> bool:
    """Return whether a slice is a complete and valid pool by itself."""
    return slice_.is_simple and slice_.slice_count == 1 and slice_.has_unique_names and not slice_.has_counters


def is_relevant(inventory: Inventory, slice_: Slice, node: Node) -> bool:
    """Return whether a slice concerns a node."""
    gates = inventory.gates
    if not gates.partitionable_devices and (slice_.selects_per_device or slice_.has_counters):
        return False
    if slice_.has_counters:
        return True
    if slice_.node_name or slice_.is_for_all_nodes or slice_.node_selector is not None:
        return matches_node(node, slice_.node_name, slice_.is_for_all_nodes, slice_.node_selector)
    return slice_.selects_per_device and any(reaches_node(inventory, slice_, device, node) for device in slice_.devices)


def matches_node(node: Node, name: str, is_for_all: bool, selector: NodeSelector | None) -> bool:
    """Return whether a node is the named one, or any one, or selected."""
    if name:
        return node.name == name
    if is_for_all:
        return True
    return selector is not None and selector.matches(node.labels, node.name)


def reaches_node(inventory: Inventory, slice_: Slice, device: SliceDevice, node: Node) -> bool:
    """Return whether a device that has a node selection of its own is reached from a node."""
    details = inventory.get_details(slice_, device)
    return matches_node(node, details.node_name, details.is_for_all_nodes, details.node_selector)


def _rank(inventory: Inventory, pool: Pool) -> tuple[bool, bool, PoolId]:
    return pool.state is PoolState.OUTDATED, _has_binding_conditions(inventory, pool), pool.id


def _has_binding_conditions(inventory: Inventory, pool: Pool) -> bool:
    return any(
        not device.is_plain and inventory.get_details(slice_, device).has_binding_conditions
        for slice_ in pool.slices
        if not slice_.is_plain
        for device in slice_.devices
    )


def _build_pool(inventory: Inventory, pool_id: PoolId, slices: Sequence[Slice]) -> Pool:
    generation = max(slice_.generation for slice_ in slices)
    current = [slice_ for slice_ in slices if slice_.generation == generation]
    expected = current[0].slice_count
    relevant = tuple(slices)
    if len(current) == expected:
        return _check_pool(inventory, pool_id, current, (), relevant)
    of_pool = inventory.slices.of_pool[pool_id]
    everywhere = [slice_ for slice_ in of_pool if slice_.generation == generation]
    seen = len(everywhere)
    if any(slice_.generation > generation for slice_ in of_pool):
        return Pool(pool_id, PoolState.OUTDATED, (), relevant, generation=generation, seen=seen, expected=expected)
    if seen != expected:
        return Pool(pool_id, PoolState.INCOMPLETE, (), relevant, generation=generation, seen=seen, expected=expected)
    names = {slice_.name for slice_ in current}
    others = [slice_ for slice_ in everywhere if slice_.name not in names]
    return _check_pool(inventory, pool_id, current, others, relevant)


def _check_pool(
    inventory: Inventory,
    pool_id: PoolId,
    current: Sequence[Slice],
    others: Sequence[Slice],
    relevant: tuple[Slice, ...],
) -> Pool:
    """Validate a complete pool."""
    ordered = sorted(current, key=lambda slice_: slice_.name)
    partitions = inventory.gates.partitionable_devices
    with_devices = tuple(slice_ for slice_ in ordered if not (partitions and slice_.has_counters))
    generation, count = current[0].generation, len(current) + len(others)
    counter_sets: dict[str, Mapping[str, int]] = {}
    try:
        _check_names(with_devices)
        if partitions:
            counter_sets = _collect_counters(ordered)
            _check_consumption(inventory, counter_sets, ordered)
            _check_consumption(inventory, counter_sets, others)
    except _InvalidPoolError as error:
        return Pool(
            pool_id,
            PoolState.INVALID,
            (),
            relevant,
            generation=generation,
            seen=count,
            expected=count,
            cause=str(error),
        )
    return Pool(
        pool_id,
        PoolState.USABLE,
        with_devices,
        relevant,
        tuple(others),
        counter_sets,
        generation=generation,
        seen=count,
        expected=count,
    )


class _InvalidPoolError(Exception):
    """A pool whose slices contradict each other; the text is Kubernetes' own."""


def _check_names(slices: Sequence[Slice]) -> None:
    if len(slices) == 1 and slices[0].has_unique_names:
        return
    names: set[str] = set()
    for slice_ in slices:
        for device in slice_.devices:
            if device.name in names:
                raise _InvalidPoolError(f"duplicate device name {device.name}")
            names.add(device.name)


def _collect_counters(slices: Iterable[Slice]) -> dict[str, Mapping[str, int]]:
    counter_sets: dict[str, Mapping[str, int]] = {}
    for slice_ in slices:
        if not slice_.has_counters:
            continue
        try:
            named = read_counter_sets(slice_)
        except FieldError as error:
            raise FieldError(f"ResourceSlice {slice_.name}: {error.path}", error.cause) from None
        for name, counters in named:
            if name in counter_sets:
                raise _InvalidPoolError(f"duplicate counter set name {name}")
            counter_sets[name] = counters
    return counter_sets


def _check_consumption(
    inventory: Inventory, counter_sets: Mapping[str, Mapping[str, int]], slices: Iterable[Slice]
) -> None:
    for slice_ in slices:
        for device in () if slice_.is_plain else slice_.devices:
            if device.is_plain:
                continue
            for name, counters in inventory.get_details(slice_, device).counters:
                if name not in counter_sets:
                    raise _InvalidPoolError(f"counter set {name} not found")
                for counter in counters:
                    if counter not in counter_sets[name]:
                        raise _InvalidPoolError(f"counter {counter} not found in counter set {name}")
