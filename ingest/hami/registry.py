"""Which card sits on which node, from node registrations: HAMi's device lines name a card and no node.

The registrations are read from a node list (``kubectl get nodes -o json``) or from the log itself, which prints them
when the scheduler starts. A card that no registration names has no node here, and none is guessed.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from hami.go_values import InvalidValueError
from hami.node_registration import read_node
from hami.registration import Device, Registration, decode_registration, device_of_json
from hami.vendor_catalog import vendors_on_node


class Card(NamedTuple):
    """A registered device; None is a number that its registration does not say."""

    node: str
    model: str = ""
    memory_mib: int | None = None
    cores_percent: int | None = None
    slots: int | None = None
    numa: int | None = None


Cards = dict[str, Card]
"""By UUID."""


def cards_of_nodes(node_list: bytes) -> Cards:
    """The cards of a node list in JSON: a ``List``, or one ``Node``.

    Raises ``ValueError`` where it is neither.
    """
    try:
        said = orjson.loads(node_list)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error}): write it with `kubectl get nodes -o json`") from None
    nodes = said.get("items", [said]) if isinstance(said, dict) else None
    if not isinstance(nodes, list):
        raise ValueError("no list of nodes: write it with `kubectl get nodes -o json`")
    return dict(card for node in nodes for card in _of_node(node))


def _of_node(node: Any) -> Iterator[tuple[str, Card]]:
    metadata = node.get("metadata") if isinstance(node, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name := metadata.get("name"), str):
        return
    annotations = metadata.get("annotations")
    vendors = vendors_on_node(annotations if isinstance(annotations, dict) else ())
    found = read_node(node, vendors).all_devices(vendors)
    for device in found.registration.devices if found else ():
        yield from _card(name, device)


def cards_of_registration(node: str, text: str) -> Iterator[tuple[str, Card]]:
    """The cards of one registration annotation; none of one that can't be read."""
    found = decode_registration(text)
    for device in found.devices if isinstance(found, Registration) else ():
        yield from _card(node, device)


def cards_of_devices(node: str, devices: Iterable[Any]) -> Iterator[tuple[str, Card]]:
    """The cards of a registration's parsed JSON; what is no device is passed over."""
    for item in devices:
        try:
            device = device_of_json(item, "")
        except InvalidValueError:
            continue
        yield from _card(node, device)


def _card(node: str, device: Device) -> Iterator[tuple[str, Card]]:
    said = (device.memory_mib, device.cores, device.slots, device.numa)
    memory, cores, slots, numa = (amount if 0 <= amount < 2**31 else None for amount in said)
    if device.uuid:
        yield device.uuid, Card(node, device.model, memory, cores, slots, numa)
