"""When a node's registration is read anew, kept as it was, or given up.

HAMi's scheduler asks (`hami.io/node-handshake: Requesting_<time>`) and the device plugin answers by changing it. A node
that leaves the question open for a minute and has no GPU allocatable is given up, and so is one whose allocatable GPUs
drop to none. A node that is merely silent keeps what it registered before. (`NvidiaGPUDevices.CheckHealth`,
`device.CheckHealth`.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from hami.quantities import whole
from scheduler.devices.vendors import NVIDIA, NodeKeys

HANDSHAKE: Final = "hami.io/node-handshake"
LIMIT_SECONDS: Final = 60


class Step(Enum):
    READ = "read the register annotation"
    KEEP = "keep what is registered"
    DROP = "give the node's devices up"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last look at a node left behind: its allocatable GPUs, and the annotation its devices were read from."""

    allocatable: int = 0
    register: str | None = None


def next_step(
    seen: Seen, annotations: Mapping[str, Any], allocatable: int, now: datetime | None, keys: NodeKeys = NVIDIA.node
) -> Step:
    """What to do with the node's registration. Without `now` no question is ever too old.

    `now` is the scheduler's local time without a zone, as the handshake itself is written.
    """
    if allocatable != seen.allocatable:
        return Step.READ if allocatable else Step.DROP
    handshake = annotations.get(keys.handshake)
    if not isinstance(handshake, str) or "Requesting" not in handshake:
        return Step.READ
    if is_given_up(handshake, allocatable, now):
        return Step.DROP
    has_changed = seen.register is not None and annotations.get(keys.register) != seen.register
    return Step.READ if has_changed else Step.KEEP


def is_given_up(handshake: object, allocatable: int, now: datetime | None) -> bool:
    """Whether the question has stood for a minute on a node that has nothing allocatable."""
    if not isinstance(handshake, str) or "Requesting" not in handshake or now is None or allocatable:
        return False
    age = _age_seconds(handshake, now)
    return age is not None and age >= LIMIT_SECONDS


def _age_seconds(handshake: str, now: datetime) -> float | None:
    parts = handshake.split("_")
    try:
        asked = datetime.strptime(parts[1], "%Y-%m-%d %H:%M:%S") if len(parts) == 2 else None  # noqa: DTZ007 - none is written
    except ValueError:
        return None
    return (now - asked).total_seconds() if asked else None


def allocatable_gpus(node: Mapping[str, Any], resource: str = NVIDIA.resources.count) -> int:
    """`status.allocatable["nvidia.com/gpu"]` of a Node object; 0 where it says nothing usable."""
    status = node.get("status")
    allocatable = status.get("allocatable") if isinstance(status, Mapping) else None
    return whole(allocatable.get(resource)) or 0 if isinstance(allocatable, Mapping) else 0
