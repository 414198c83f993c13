"""Whether a node's registration is read again, kept as it was, or dropped (HAMi's `NvidiaGPUDevices.CheckHealth`).

HAMi's scheduler writes a request into the handshake annotation, and the device plugin answers by changing it. A node
that leaves the request open for a minute and has no device allocatable is dropped, and so is one whose allocatable
devices fall to none. A node that is merely silent keeps what it registered before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from hami.annotations import HANDSHAKE
from hami.handshake import handshake_of, is_given_up
from hami.vendors import NVIDIA, NodeKeys


class RegistrationStep(Enum):
    READ = "read the register annotation"
    KEEP = "keep what is registered"
    DROP = "drop the node's devices"


@dataclass(frozen=True, slots=True)
class LastLook:
    """What the last look at a node found: its allocatable devices, and the annotation its devices were read from."""

    allocatable: int = 0
    register: str | None = None


def next_step(
    last: LastLook, annotations: Mapping[str, Any], allocatable: int, now: datetime | None, keys: NodeKeys = NVIDIA.node
) -> RegistrationStep:
    """What to do with the node's registration.

    now: the scheduler's local time without a zone, as the handshake is written; None: no request is ever too old.
    """
    if allocatable != last.allocatable:
        return RegistrationStep.READ if allocatable else RegistrationStep.DROP
    handshake = handshake_of(annotations, keys.handshake)
    if handshake is None or not handshake.is_request:
        return RegistrationStep.READ
    if is_given_up(handshake, allocatable, now):
        return RegistrationStep.DROP
    # While its request is open, HAMi reads the devices again only where the annotation has changed.
    has_changed = last.register is not None and annotations.get(keys.register) != last.register
    return RegistrationStep.READ if has_changed else RegistrationStep.KEEP


def unregistered_cause(step: RegistrationStep) -> str:
    """Why a node with a readable registration is not registered after this step."""
    is_dropped = step is RegistrationStep.DROP
    cause = "no GPU is allocatable any more" if is_dropped else "its device plugin has not answered yet"
    return f"{cause} (status.allocatable and annotation {HANDSHAKE})"
