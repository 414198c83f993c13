"""Which card sits on which node, from node registrations: HAMi's device lines name a card and no node.

The registrations are read from a node list (``kubectl get nodes -o json``) or from the log itself, which prints them
when the scheduler starts. A card that no registration names has no node here, and none is guessed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

REGISTRATION_PREFIX: Final = "hami.io/node-"
REGISTRATION_SUFFIX: Final = "-register"
_COLON_FIELDS: Final = 7
"""Of a device in the old form: id, slots, memory, cores, type, NUMA, health; later ones add index and mode."""


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
    for key, text in annotations.items() if isinstance(annotations, dict) else ():
        if key.startswith(REGISTRATION_PREFIX) and key.endswith(REGISTRATION_SUFFIX) and isinstance(text, str):
            yield from cards_of_registration(name, text)


def cards_of_registration(node: str, text: str) -> Iterator[tuple[str, Card]]:
    """The cards of one registration annotation, in either of HAMi's forms (JSON since v2.7, colons before)."""
    if not text.lstrip().startswith("["):
        yield from _of_colons(node, text)
        return
    try:
        devices = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    yield from cards_of_devices(node, devices if isinstance(devices, list) else ())


def cards_of_devices(node: str, devices: Iterable[Any]) -> Iterator[tuple[str, Card]]:
    """The cards of a registration's parsed JSON; what is no device is passed over."""
    for device in devices:
        if isinstance(device, Mapping) and isinstance(uuid := device.get("id"), str) and uuid:
            model = device.get("type")
            memory, cores, slots, numa = (_number(device.get(key, 0)) for key in ("devmem", "devcore", "count", "numa"))
            yield uuid, Card(node, model if isinstance(model, str) else "", memory, cores, slots, numa)


def _of_colons(node: str, text: str) -> Iterator[tuple[str, Card]]:
    for device in text.split(":"):
        fields = device.split(",")
        if len(fields) >= _COLON_FIELDS and fields[0]:
            uuid, slots, memory, cores, model, numa = fields[:6]
            yield uuid, Card(node, model, _read(memory), _read(cores), _read(slots), _read(numa))


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None


def _read(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
