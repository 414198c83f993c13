"""The node of each device, from node registrations: HAMi's device lines name a device and no node.

The registrations come from a node list (``kubectl get nodes -o json``) or from the log itself: HAMi prints them when it
starts. A device that no registration names has no node here, and none is guessed.

The decoder is imported with the first registration: many logs have none, and the import takes a twentieth of the time
of ``explain``.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from engine.hami.registration import Device


class DeviceInRegistration(NamedTuple):
    """A device and its node; None is a number that the registration does not give."""

    node: str
    model: str = ""
    memory_mib: int | None = None
    cores_percent: int | None = None
    slots: int | None = None
    numa: int | None = None
    device_index: int | None = None
    is_healthy: bool = True


RegisteredDevices = dict[str, DeviceInRegistration]
"""By UUID."""


def parse_node_list(node_list: bytes) -> RegisteredDevices:
    """Parse the devices of a node list in JSON: a ``List``, or one ``Node``.

    Raises ``ValueError`` for anything else.
    """
    try:
        parsed = orjson.loads(node_list)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error}): write it with `kubectl get nodes -o json`") from None
    nodes = parsed.get("items", [parsed]) if isinstance(parsed, dict) else None
    if not isinstance(nodes, list):
        raise ValueError("not a list of nodes: write it with `kubectl get nodes -o json`")
    return dict(device for node in nodes for device in _parse_node(node))


def _parse_node(node: Any) -> Iterator[tuple[str, DeviceInRegistration]]:
    metadata = node.get("metadata") if isinstance(node, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name := metadata.get("name"), str):
        return
    annotations = metadata.get("annotations")
    # HAMi's own reading of the registration: see engine.hami.node_registration.
    from engine.hami.node_registration import read_node
    from engine.hami.vendor_catalog import list_vendors

    vendors = list_vendors(annotations if isinstance(annotations, dict) else ())
    reading = read_node(node, vendors).combine_devices(vendors)
    for device in reading.registration.devices if reading else ():
        yield from _to_registered(name, device)


def parse_registration(node: str, text: str) -> Iterator[tuple[str, DeviceInRegistration]]:
    """Parse one registration annotation; no device if it can't be read."""
    from engine.hami.registration import Registration, decode_registration

    registration = decode_registration(text)
    for device in registration.devices if isinstance(registration, Registration) else ():
        yield from _to_registered(node, device)


def parse_devices(node: str, items: Iterable[Any]) -> Iterator[tuple[str, DeviceInRegistration]]:
    """Parse the devices of a registration's decoded JSON; skips items that are no devices."""
    from engine.hami.go_values import InvalidValueError
    from engine.hami.registration import decode_device

    for item in items:
        try:
            device = decode_device(item, "")
        except InvalidValueError:
            continue
        yield from _to_registered(node, device)


def _to_registered(node: str, device: "Device") -> Iterator[tuple[str, DeviceInRegistration]]:
    amounts = (device.memory_mib, device.cores, device.slots, device.numa, device.index)
    # Numbers beyond int32 are mistakes of a device plugin.
    memory, cores, slots, numa, index = (amount if 0 <= amount < 2**31 else None for amount in amounts)
    if device.uuid:
        yield (
            device.uuid,
            DeviceInRegistration(node, device.model, memory, cores, slots, numa, index, device.is_healthy),
        )
