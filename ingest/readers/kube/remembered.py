"""Bounded memory of objects."""

from collections import OrderedDict
from hashlib import blake2b
from typing import Any, Final

from schemas.codec.records import encode_value
from schemas.events import Event, NodeRegistered

# Kubernetes supports 150,000 pods in a cluster; what is forgotten is at worst observed once more.
MAX_REMEMBERED: Final = 200_000


def digest_observation(observation: Event) -> bytes:
    """Digest an observation without its time, and with only the step of a handshake: HAMi keeps renewing its time."""
    content = {name: value for name, value in observation.__dict__.items() if name != "observed_at"}
    if isinstance(observation, NodeRegistered):
        content["handshake"] = observation.handshake.partition("_")[0].partition(" ")[0]
    return blake2b(encode_value(content), digest_size=16).digest()


def remember(entries: OrderedDict[str, Any], key: str, value: Any) -> None:
    """Set a value as the newest; the oldest goes where there are more than ``MAX_REMEMBERED``."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > MAX_REMEMBERED:
        entries.popitem(last=False)
