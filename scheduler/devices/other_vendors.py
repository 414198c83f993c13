"""The cards of vendors other than NVIDIA that a node says it has, in each vendor's own form, and all cards together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hami.quantities import whole
from hami.registration import (
    Device,
    Malformed,
    NodeDevices,
    Registration,
    decode_metax,
    decode_registration,
)
from scheduler.devices.handshake import allocatable_gpus, is_given_up
from scheduler.devices.vendors import Form, Vendor

_SLOTS_OF_A_CARD = 100
_CORES_OF_A_CARD = 100


@dataclass(frozen=True, slots=True)
class Further:
    """What one vendor's part of a node says: its code in the table, and its cards."""

    code: int
    registration: Registration


def further_devices(
    node: Mapping[str, Any], vendors: Iterable[tuple[int, Vendor]], now: datetime | None
) -> tuple[tuple[Further, ...], tuple[Malformed, ...]]:
    """What can be read of each vendor that the node has cards of, and what can't.

    now: local time without a zone; with it, a vendor whose plugin left a question open for a minute, on a node that has
    none of its cards allocatable, is given up.
    """
    found = [(code, _cards(node, vendor, now)) for code, vendor in vendors]
    readable = tuple(Further(code, cards) for code, cards in found if isinstance(cards, Registration))
    return readable, tuple(cards for _, cards in found if isinstance(cards, Malformed))


def _cards(node: Mapping[str, Any], vendor: Vendor, now: datetime | None) -> Registration | Malformed | None:
    if vendor.node.form is Form.CAPACITY:
        return _by_capacity(node, vendor)
    annotations = _mapping(_mapping(node.get("metadata")).get("annotations"))
    text = annotations.get(vendor.node.register)
    if text is None or _is_given_up(node, annotations, vendor, now):
        return None
    if vendor.node.form is Form.METAX:
        return decode_metax(text, vendor.node.register, vendor.word)
    return decode_registration(text, vendor.node.register)


def _is_given_up(node: Mapping[str, Any], annotations: Mapping[str, Any], vendor: Vendor, now: datetime | None) -> bool:
    allocatable = allocatable_gpus(node, vendor.resources.count)
    return is_given_up(annotations.get(vendor.node.handshake), allocatable, now)


def _by_capacity(node: Mapping[str, Any], vendor: Vendor) -> Registration | None:
    """Cards that no annotation lists (Cambricon): a hundred of the cores resource each, memory in equal shares."""
    capacity = _mapping(_mapping(node.get("status")).get("capacity"))
    cores = whole(capacity.get(vendor.resources.cores)) or 0
    memory = whole(capacity.get(vendor.resources.memory)) or 0
    name = str(_mapping(node.get("metadata")).get("name", ""))
    count = min(-(-cores // _CORES_OF_A_CARD), 1024)
    if count <= 0:
        return None
    share = memory * vendor.amounts.memory_unit_mib * _CORES_OF_A_CARD // cores
    cards = (
        Device(
            f"{name}-{vendor.node.register}-{index}",
            index,
            _SLOTS_OF_A_CARD,
            max(0, min(share, 2**31 - 1)),
            _CORES_OF_A_CARD,
            vendor.word,
            is_healthy=True,
        )
        for index in range(count)
    )
    return Registration(tuple(cards), "json")


def together(
    own: NodeDevices | None, code: int, nvidia: Vendor | None, further: Iterable[Further]
) -> NodeDevices | None:
    """All cards of a node, NVIDIA's first. A card in NVIDIA's annotation is NVIDIA's only if its model says so."""
    parts = list(further)
    if own is None and not parts:
        return None
    cards = own.registration.devices if own else ()
    vendors = tuple(code if nvidia and nvidia.owns(card.model) else 0 for card in cards)
    for part in parts:
        cards += part.registration.devices
        vendors += (part.code,) * len(part.registration.devices)
    form = own.registration.form if own else parts[0].registration.form
    return NodeDevices(Registration(cards, form), own.pair_scores if own else {}, vendors)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
