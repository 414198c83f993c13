"""Every device, class and claim of a snapshot, read once for all pods that are judged on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from engine.claims.allocated import AllocatedDevices, collect_allocated
from engine.claims.claims import ResourceClaim, read_claim
from engine.claims.device_details import DeviceDetails, DeviceTaint, read_details, read_taint
from engine.claims.extended import map_classes
from engine.claims.gates import DEFAULT_GATES, Gates
from engine.claims.requests import DeviceClass, read_class
from engine.claims.slice_index import SliceIndex, index_slices
from engine.claims.slices import Pool, Slice, SliceDevice
from engine.snapshot import kinds
from engine.snapshot.fields import FieldError, Object, RejectedObject, read_mapping, read_text
from engine.snapshot.nodes import Node
from engine.snapshot.snapshot import Key, Snapshot
from runtime.kubernetes.object_fields import iterate_objects

NEEDED: Final = frozenset({kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS})
"""Kinds without which nothing about claims is judged."""

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule. driver, pool, device: "" for any."""

    name: str
    driver: str
    pool: str
    device: str
    taint: DeviceTaint


@dataclass(frozen=True, slots=True, eq=False)
class Inventory:
    """Slices, classes and claims of a cluster. rejected: objects left out because of a malformed field."""

    gates: Gates
    slices: SliceIndex
    classes: Mapping[str, DeviceClass]
    extended_classes: Mapping[str, str]
    """Names of the classes that serve extended resources, by resource."""
    claims: Mapping[Key, ResourceClaim]
    allocated: AllocatedDevices
    taint_rules: tuple[TaintRule, ...]
    rejected: tuple[RejectedObject, ...]
    unread: frozenset[str]
    """Kinds (`engine.snapshot.kinds`) that could not be read."""
    details: dict[int, DeviceDetails] = field(default_factory=dict)
    """Details of devices that a judgement has looked at, by the identity of the device; filled on demand."""
    pools: dict[str, tuple[Node, tuple[Pool, ...]]] = field(default_factory=dict)
    """Pools of nodes that a judgement has looked at, by name of the node; filled on demand."""

    def get_details(self, slice_: Slice, device: SliceDevice) -> DeviceDetails:
        """Return a device in full; raise FieldError if a field of it has the wrong type."""
        details = self.details.get(id(device))
        if details is None:
            details = self.details[id(device)] = self._read(slice_, device)
        return details

    def _read(self, slice_: Slice, device: SliceDevice) -> DeviceDetails:
        try:
            return read_details(device)
        except FieldError as error:
            raise FieldError(f"ResourceSlice {slice_.name}: {error.path}", error.cause) from None

    def list_taints(self, slice_: Slice, device: SliceDevice) -> tuple[DeviceTaint, ...]:
        """List the taints of a device: those of its slice, then those of rules."""
        of_slice = () if device.is_plain else self.get_details(slice_, device).taints
        rules = tuple(rule.taint for rule in self.taint_rules if _applies(rule, slice_, device))
        return of_slice + rules


def read_inventory(snapshot: Snapshot, gates: Gates = DEFAULT_GATES, *, previous: Inventory | None = None) -> Inventory:
    """Read the inventory of a snapshot; an object with a malformed field is left out and named in `rejected`.

    previous: of an earlier snapshot of the same cluster; objects that have not changed since are not read again.
    """
    slices = index_slices(snapshot.get_objects(kinds.RESOURCE_SLICE), previous.slices if previous else None)
    reader = _Reader(snapshot)
    classes = reader.read(kinds.DEVICE_CLASS, lambda _, name, value: read_class(name, value))
    claims = reader.read(kinds.RESOURCE_CLAIM, _read_changed_claims(previous.claims if previous else {}))
    rules = reader.read(kinds.DEVICE_TAINT_RULE, _read_rule)
    rules = rules if gates.device_taint_rules or _are_enforced(snapshot) else []
    is_unchanged = previous is not None and previous.slices is slices and previous.gates == gates
    return Inventory(
        gates=gates,
        slices=slices,
        classes={device_class.name: device_class for device_class in classes},
        extended_classes=map_classes(classes),
        claims={claim.key: claim for claim in claims},
        allocated=collect_allocated(claims, with_shares=gates.consumable_capacity),
        taint_rules=tuple(rules),
        rejected=(*slices.rejected, *reader.rejected),
        unread=snapshot.find_missing_kinds(*NEEDED),
        details=previous.details if previous and is_unchanged else {},
        pools=previous.pools if previous and is_unchanged else {},
    )


def _are_enforced(snapshot: Snapshot) -> bool:
    """Tell whether the cluster enforces its DeviceTaintRules though its release does not by default."""
    # Their controller writes a condition, and runs only with the feature.
    objects = snapshot.get_objects(kinds.DEVICE_TAINT_RULE).values()
    return any(next(iterate_objects(rule, "status", "conditions"), None) for rule in objects)


class _Reader:
    """Reads objects of a snapshot kind by kind, and keeps those that are malformed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.rejected: list[RejectedObject] = []

    def read(self, kind: str, reader: Callable[[str, str, Object], Record]) -> list[Record]:
        records = []
        for (namespace, name), value in self._snapshot.get_objects(kind).items():
            try:
                records.append(reader(namespace, name, value))
            except FieldError as error:
                self.rejected.append(RejectedObject(kind, namespace, name, error.path, error.cause))
        return records


def _read_changed_claims(
    before: Mapping[Key, ResourceClaim],
) -> Callable[[str, str, Object], ResourceClaim]:
    """Return a reader of claims that returns those that it was given before where the object is the same."""

    def read(namespace: str, name: str, value: Object) -> ResourceClaim:
        claim = before.get((namespace, name))
        return claim if claim and claim.object is value else read_claim(namespace, name, value)

    return read


def _read_rule(_: str, name: str, value: Object) -> TaintRule:
    spec = read_mapping(value, "spec")
    selector = read_mapping(spec, "deviceSelector", "spec")
    driver, pool, device = (read_text(selector, key, "spec.deviceSelector") for key in ("driver", "pool", "device"))
    return TaintRule(name, driver, pool, device, read_taint(read_mapping(spec, "taint", "spec"), "spec.taint", name))


def _applies(rule: TaintRule, slice_: Slice, device: SliceDevice) -> bool:
    return rule.driver in ("", slice_.driver) and rule.pool in ("", slice_.pool) and rule.device in ("", device.name)
