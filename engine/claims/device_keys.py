"""Keys of devices: two devices with one key are equal in every property that matters to a judgement."""

import marshal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.claims.cel.reads import Path
from engine.claims.slices import SliceDevice

_FORMAT: Final = 2
"""Format of `marshal` in which equal values have equal bytes; later ones refer back to objects seen before."""


@dataclass(frozen=True, slots=True)
class PropertyNames:
    """Names under which slices of one driver hold the properties that are read."""

    attributes: tuple[str, ...]
    capacity: tuple[str, ...]


def list_names(paths: Iterable[Path], driver: str) -> PropertyNames:
    """List the names of properties in slices of a driver, which may leave its own domain out."""
    names: dict[str, dict[str, None]] = {"attributes": {}, "capacity": {}}
    for kind, domain, short in paths:
        if domain in ("", driver):
            names[kind][short] = None
        names[kind][f"{domain or driver}/{short}"] = None
    return PropertyNames(tuple(names["attributes"]), tuple(names["capacity"]))


def make_key(names: PropertyNames | None, device: SliceDevice) -> bytes:
    """Make the key of a device; without names every property matters."""
    values: Any = device.attributes, device.capacity
    if names is not None:
        values = list(map(device.attributes.get, names.attributes)), list(map(device.capacity.get, names.capacity))
    return encode_values(values)


def encode_values(values: Any) -> bytes:
    """Encode values of devices: equal ones have equal bytes."""
    try:
        return marshal.dumps(values, _FORMAT)
    except ValueError:
        # Objects of files are dictionaries of a class of their own, which know the lines of their keys.
        return marshal.dumps(_to_plain(values), _FORMAT)


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _to_plain(entry) for key, entry in value.items()}
    return [_to_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value
