"""Steps with a node's registration: read it again, keep it, or drop it (HAMi's `NvidiaGPUDevices.CheckHealth`).

HAMi's scheduler writes a request into the handshake annotation, and the device plugin answers by changing it. A node
that leaves the request open for a minute and has no device allocatable is dropped, and so is one whose allocatable
devices fall to none. A node that is merely silent keeps what it registered before.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, NamedTuple

from engine.hami.annotations import HANDSHAKE
from engine.hami.handshake import count_allocatable, is_given_up, read_handshake
from engine.hami.registration import Malformed, Registration
from engine.hami.vendors import NO_HANDSHAKE, NVIDIA, Family, NodeKeys, Vendor


class RegistrationStep(Enum):
    READ = "read the register annotation"
    KEEP = "keep what is registered"
    DROP = "drop the node's devices"


class LastLook(NamedTuple):
    """Observations of the last look at a node: its allocatable devices, and its register annotation, read or not."""

    allocatable: int = 0
    register: str = ""


def choose_step(
    last: LastLook, annotations: Mapping[str, Any], allocatable: int, now: datetime | None, keys: NodeKeys = NVIDIA.node
) -> tuple[RegistrationStep, LastLook]:
    """Choose the step with the node's registration, and what to remember for the next look.

    now: the scheduler's local time without a zone, as the handshake is written; None: no request is ever too old.
    """
    register = annotations.get(keys.register, "")
    handshake = read_handshake(annotations, keys.handshake)
    is_open = handshake is not None and handshake.is_request
    look = LastLook(allocatable, register)
    if not allocatable and last.allocatable:
        return RegistrationStep.DROP, look
    if allocatable != last.allocatable:
        return RegistrationStep.READ, look
    if is_given_up(handshake, allocatable, now):
        return RegistrationStep.DROP, last
    # While its request is open, HAMi reads the devices again only where the annotation has changed. Of a node that
    # never had one allocatable it does not even compare that.
    if is_open and (not allocatable or register == last.register):
        return RegistrationStep.KEEP, last
    return RegistrationStep.READ, look if allocatable else last


_BY_CAPACITY: Final = (Family.METAX_GPU, Family.METAX_SGPU, Family.GCU)
"""Families whose nodes are healthy only while they list devices."""


def choose_vendor_step(
    vendor: Vendor,
    node: Mapping[str, Any],
    annotations: Mapping[str, Any],
    registration: Registration | Malformed | None,
    now: datetime | None,
) -> RegistrationStep:
    """Choose the step with the registration of a vendor other than NVIDIA; registration: what the node lists now."""
    if vendor.family is Family.CUSTOM or vendor.family in _BY_CAPACITY:
        has_devices = isinstance(registration, Registration) and bool(registration.devices)
        return RegistrationStep.READ if has_devices else RegistrationStep.DROP
    if vendor.family not in NO_HANDSHAKE:
        handshake = read_handshake(annotations, vendor.node.handshake)
        if handshake is not None and handshake.is_request:
            # HAMi takes a node in only after its device plugin has answered once.
            allocatable = count_allocatable(node, vendor.resources.count)
            return RegistrationStep.DROP if is_given_up(handshake, allocatable, now) else RegistrationStep.KEEP
    if not isinstance(registration, Registration):
        return RegistrationStep.KEEP
    return RegistrationStep.READ if registration.devices else RegistrationStep.DROP


def describe_cause(step: RegistrationStep) -> str:
    """Describe why a node with a readable registration is not registered after this step."""
    is_dropped = step is RegistrationStep.DROP
    cause = "no GPU is allocatable any more" if is_dropped else "its device plugin has not answered yet"
    return f"{cause} (status.allocatable and annotation {HANDSHAKE})"
