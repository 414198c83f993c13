"""The slices of a cluster, found by node and by pool."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from engine.claims.slices import PoolId, Slice, read_slice
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError, Object, RejectedObject
from engine.snapshot.snapshot import Key

MAX_DEVICES: Final = 500_000
"""Devices of a cluster beyond which slices are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class SliceIndex:
    """Slices of a cluster.

    table: the objects that were read. on_node: slices of one node, by its name. shared: all others, and those with
    counters. of_pool: all slices by pool. rejected: objects left out because of a malformed field or their number.
    """

    table: Mapping[Key, Object]
    by_name: Mapping[str, Slice]
    on_node: Mapping[str, tuple[Slice, ...]]
    shared: tuple[Slice, ...]
    of_pool: Mapping[PoolId, tuple[Slice, ...]]
    rejected: tuple[RejectedObject, ...]


def index_slices(table: Mapping[Key, Object], previous: SliceIndex | None = None) -> SliceIndex:
    """Index slices; objects that an earlier index was made of are not read again."""
    if previous and previous.table is table:
        return previous
    before: Mapping[str, Slice] = previous.by_name if previous else {}
    rejected: list[RejectedObject] = []
    by_name: dict[str, Slice] = {}
    count = 0
    for (_, name), value in table.items():
        slice_ = before.get(name)
        if slice_ is None or slice_.object is not value:
            try:
                slice_ = read_slice(name, value)
            except FieldError as error:
                rejected.append(RejectedObject(kinds.RESOURCE_SLICE, "", name, error.path, error.cause))
                continue
        count += len(slice_.plain_devices)
        if count > MAX_DEVICES:
            cause = f"holds devices beyond the first {MAX_DEVICES:,} of the cluster, which are not judged"
            rejected.append(RejectedObject(kinds.RESOURCE_SLICE, "", name, "spec.devices", cause))
        else:
            by_name[name] = slice_
    return _sort_slices(table, by_name, rejected)


def _sort_slices(
    table: Mapping[Key, Object], by_name: Mapping[str, Slice], rejected: Iterable[RejectedObject]
) -> SliceIndex:
    on_node: dict[str, list[Slice]] = {}
    shared: list[Slice] = []
    of_pool: dict[PoolId, list[Slice]] = {}
    for slice_ in by_name.values():
        if slice_.node_name and not slice_.has_counters:
            on_node.setdefault(slice_.node_name, []).append(slice_)
        else:
            shared.append(slice_)
        of_pool.setdefault((slice_.driver, slice_.pool), []).append(slice_)
    return SliceIndex(
        table,
        by_name,
        {node: tuple(slices) for node, slices in on_node.items()},
        tuple(shared),
        {pool: tuple(slices) for pool, slices in of_pool.items()},
        tuple(rejected),
    )
