"""All devices that a Node object offers: NVIDIA's from its register annotation, other vendors' in each one's own form.

`read_node` is the only reader of registrations. The scheduler applies HAMi's handshake rules to what it returns
(`engine/fit/devices/cluster_state.py`); `ingest` reports it as it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from engine.hami.annotations import CORDONED_DEVICES, PAIR_SCORES, REGISTER
from engine.hami.go_values import (
    INT64,
    Fields,
    InvalidValueError,
    describe_kind,
    make_integer_reader,
    parse_json,
    read_array,
    read_fields,
    read_string,
    to_mapping,
)
from engine.hami.handshake import count_allocatable, is_given_up, read_handshake
from engine.hami.registration import Malformed, Registration, decode_metax, decode_registration
from engine.hami.vendor_registrations import decode_drs, derive_devices
from engine.hami.vendors import NVIDIA, Family, Form, Vendor, Vendors, find_code, find_vendor

_REMOTE_MODE: Final = "remote"


class NodeDevices(NamedTuple):
    """Devices of a node. pair_scores: how well two of them communicate, by UUID and UUID.

    vendors: per device the code of its vendor, 0 for none; empty where vendors were not looked at.
    """

    registration: Registration
    pair_scores: Mapping[str, Mapping[str, int]]
    vendors: tuple[int, ...] = ()


class VendorDevices(NamedTuple):
    """Devices of one vendor other than NVIDIA. code: the vendor's position in the table of vendors."""

    code: int
    registration: Registration


class NodeReading(NamedTuple):
    """Registrations in a Node object, as they are. nvidia: None where NVIDIA's annotation is absent.

    others: by code, the registrations of the other vendors that the node has something of.
    """

    nvidia: NodeDevices | Malformed | None
    others: Mapping[int, Registration | Malformed]

    @property
    def problem(self) -> Malformed | None:
        """First registration that can't be read, NVIDIA's before all others."""
        registrations = (self.nvidia, *self.others.values())
        return next((registration for registration in registrations if isinstance(registration, Malformed)), None)

    def combine_devices(self, vendors: Vendors) -> NodeDevices | None:
        """Combine all devices that can be read; None for none."""
        others = [
            VendorDevices(code, registration)
            for code, registration in self.others.items()
            if isinstance(registration, Registration) and registration.devices
        ]
        return combine_devices(self.nvidia if isinstance(self.nvidia, NodeDevices) else None, others, vendors)


def read_node(node: Mapping[str, Any], vendors: Vendors, now: datetime | None = None) -> NodeReading:
    """Read the registrations of `vendors` in a Node object.

    now: the scheduler's local time without a zone; with it, other vendors' devices are left out where HAMi gives them
    up for an unanswered handshake. NVIDIA's rule needs the node's history, so the caller applies it.
    """
    annotations = to_mapping(to_mapping(node.get("metadata")).get("annotations"))
    nvidia = find_vendor(vendors, NVIDIA.word)
    others = {
        code: read_vendor(node, vendor, now) for code, vendor in enumerate(vendors, 1) if vendor.word != NVIDIA.word
    }
    return NodeReading(
        _leave_remote_out(decode_nvidia(annotations, nvidia.node.register), nvidia) if nvidia else None,
        {code: registration for code, registration in others.items() if registration is not None},
    )


def _leave_remote_out(devices: NodeDevices | Malformed | None, nvidia: Vendor) -> NodeDevices | Malformed | None:
    """Leave out devices that another node offers over the network, where HAMi's release does."""
    if not isinstance(devices, NodeDevices) or not nvidia.rules.leaves_remote_out:
        return devices
    registration = devices.registration
    local = tuple(device for device in registration.devices if device.mode != _REMOTE_MODE)
    return devices._replace(registration=registration._replace(devices=local))


def decode_nvidia(annotations: Mapping[str, Any], register: str = REGISTER) -> NodeDevices | Malformed | None:
    """Decode NVIDIA's devices; None where none are registered.

    As in HAMi, malformed pair scores unregister the node.
    """
    if register not in annotations:
        return None
    registration = decode_registration(annotations[register], register)
    if isinstance(registration, Malformed):
        return registration
    # Device plugins write it only with ENABLE_TOPOLOGY_SCORE=true.
    scores = decode_pair_scores(annotations[PAIR_SCORES]) if PAIR_SCORES in annotations else {}
    return scores if isinstance(scores, Malformed) else NodeDevices(registration, scores)


def read_vendor(
    node: Mapping[str, Any], vendor: Vendor, now: datetime | None = None
) -> Registration | Malformed | None:
    """Read the devices of one vendor other than NVIDIA; None where the node has none."""
    annotations = to_mapping(to_mapping(node.get("metadata")).get("annotations"))
    if vendor.node.form is Form.CAPACITY:
        devices = derive_devices(node, vendor)
        return None if devices is None else Registration(devices, "json")
    text = annotations.get(vendor.node.register)
    if text is None:
        return None
    if vendor.family is Family.CUSTOM:
        allocatable = count_allocatable(node, vendor.resources.count)
        if is_given_up(read_handshake(annotations, vendor.node.handshake), allocatable, now):
            return None
    if vendor.node.form is Form.METAX:
        return decode_metax(text, vendor.node.register, vendor.word)
    if vendor.node.form is Form.DRS:
        name = str(to_mapping(node.get("metadata")).get("name", ""))
        return decode_drs(text, vendor.node.register, name, vendor.word)
    registration = decode_registration(text, vendor.node.register, vendor.node.form)
    if isinstance(registration, Registration) and vendor.family in (Family.BIREN, Family.VASTAI):
        # HAMi takes each for 100, whatever the node lists: only scores read it.
        return registration._replace(devices=tuple(replace(device, cores=100) for device in registration.devices))
    return registration


def combine_devices(
    nvidia: NodeDevices | None, others: Iterable[VendorDevices], vendors: Vendors
) -> NodeDevices | None:
    """Combine all devices of a node, NVIDIA's first; None for none.

    A device in NVIDIA's annotation is NVIDIA's only if its model contains the word; otherwise it has no vendor.
    """
    parts = tuple(others)
    if nvidia is None and not parts:
        return None
    vendor, code = find_vendor(vendors, NVIDIA.word), find_code(vendors, NVIDIA.word)
    devices = nvidia.registration.devices if nvidia else ()
    codes = tuple(code if vendor and vendor.matches(device.model, vendor.word) else 0 for device in devices)
    for part in parts:
        devices += part.registration.devices
        codes += (part.code,) * len(part.registration.devices)
    form = nvidia.registration.form if nvidia else parts[0].registration.form
    return NodeDevices(Registration(devices, form), nvidia.pair_scores if nvidia else {}, codes)


def decode_pair_scores(text: object) -> dict[str, dict[str, int]] | Malformed:
    """Decode `{uuid: {uuid: score}}`: how well each device communicates with each other one; higher is better."""
    if not isinstance(text, str):
        return Malformed(PAIR_SCORES, "", f"is {type(text).__name__}, write a string")
    try:
        items = enumerate(read_array(parse_json(text), ""))
        rows = [read_fields(item, _PAIR_FIELDS, f"entry {position}") for position, item in items]
    except InvalidValueError as wrong:
        return Malformed(PAIR_SCORES, wrong.location, wrong.problem)
    return {row.get("uuid", ""): row.get("score", {}) for row in rows}


def _read_scores(value: Any, location: str) -> dict[str, int]:
    if not isinstance(value, dict):
        raise InvalidValueError(location, f"is {describe_kind(value)}, write a JSON object")
    read = make_integer_reader(*INT64)
    return {uuid: read(score, f"{location} of {uuid}") for uuid, score in value.items() if score is not None}


_PAIR_FIELDS: Final[Fields] = {"uuid": ("uuid", read_string), "score": ("score", _read_scores)}


def list_cordoned_devices(annotations: Mapping[str, Any]) -> frozenset[str]:
    """List the UUIDs of the devices that `hami.io/device-cordon` takes out of use."""
    listed = annotations.get(CORDONED_DEVICES)
    return frozenset(uuid.strip() for uuid in listed.split(",")) if isinstance(listed, str) else frozenset()
