"""Devices that count for each node, from its Node objects over time, and the cause where none do. Pure.

At each change of a node, its registration is read again, kept, or dropped (HAMi's `NvidiaGPUDevices.CheckHealth`).
HAMi's scheduler writes a request into the handshake annotation, and the device plugin answers by changing it. A node
that leaves the request open for a minute and has no device allocatable is dropped, and so is one whose allocatable
devices fall to none. A node that is merely silent keeps what it registered before.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, NamedTuple

from engine.hami.annotations import HANDSHAKE
from engine.hami.go_values import to_mapping
from engine.hami.handshake import count_allocatable, count_capacity, is_given_up, read_handshake
from engine.hami.node_registration import NodeDevices, NodeReading, VendorDevices, combine_devices, read_node
from engine.hami.registration import Malformed, Registration
from engine.hami.vendors import NO_HANDSHAKE, NVIDIA, Family, NodeKeys, Vendor, Vendors, find_vendor


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
    if vendor.family is Family.AMD and not count_capacity(node, vendor.resources.count):
        return RegistrationStep.DROP
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


class NodeReadings:
    """Memory of each node, as far as HAMi's rules need it at the node's next change.

    accepts_colon_form: whether NVIDIA's annotation of HAMi <= v2.7 counts (v2.10 refuses it). reads_state: whether a
    node is first seen as a running scheduler has it: HAMi overwrites the plugin's report by its next request at once,
    so an open request says nothing while devices are allocatable.
    """

    def __init__(self, vendors: Vendors, *, accepts_colon_form: bool = True, reads_state: bool = False) -> None:
        self._vendors, self._accepts_colon_form, self._reads_state = vendors, accepts_colon_form, reads_state
        self._nvidia = find_vendor(vendors, NVIDIA.word) or NVIDIA
        self._nvidia_devices: dict[str, NodeDevices] = {}  # outlasts a broken annotation
        self._others: dict[str, dict[int, Registration]] = {}
        self._last: dict[str, LastLook] = {}
        self._causes: dict[str, str] = {}

    def read(self, name: str, node: Mapping[str, Any], now: datetime | None) -> NodeDevices | None:
        """Read the devices of the node that count now; None where none do.

        Arguments as in `ClusterColumns.apply_node`.
        """
        annotations = to_mapping(to_mapping(node.get("metadata")).get("annotations"))
        keys, allocatable = self._nvidia.node, count_allocatable(node, self._nvidia.resources.count)
        last = self._last.get(name, LastLook())
        step, self._last[name] = choose_step(last, annotations, allocatable, now, keys)
        reading = read_node(node, self._vendors, now)
        nvidia = self._accept(reading.nvidia)
        if step is RegistrationStep.DROP and name in self._nvidia_devices:
            del self._nvidia_devices[name]
            # HAMi forgets what it knew of a node with devices only.
            self._last[name] = LastLook()
        if step is RegistrationStep.READ and isinstance(nvidia, NodeDevices):
            self._nvidia_devices[name] = nvidia
        others = self._update_others(name, node, reading, now)
        counting = combine_devices(self._nvidia_devices.get(name), others, self._vendors)
        registration = nvidia if isinstance(nvidia, Malformed) else reading.problem or nvidia
        self._explain(name, registration, step, is_registered=counting is not None)
        return counting

    def _update_others(
        self, name: str, node: Mapping[str, Any], reading: NodeReading, now: datetime | None
    ) -> list[VendorDevices]:
        """Update the devices of other vendors, and list them in the order of the table."""
        remembered = self._others.setdefault(name, {})
        annotations = to_mapping(to_mapping(node.get("metadata")).get("annotations"))
        for code, vendor in enumerate(self._vendors, 1):
            registration = reading.others.get(code)
            if vendor.family is Family.NVIDIA or (registration is None and code not in remembered):
                continue
            step = choose_vendor_step(vendor, node, annotations, registration, now)
            if step is RegistrationStep.KEEP and self._reads_state and self._is_served(node, vendor, registration):
                step = RegistrationStep.READ
            if step is RegistrationStep.DROP:
                remembered.pop(code, None)
            elif step is RegistrationStep.READ and isinstance(registration, Registration):
                remembered[code] = registration
        return [VendorDevices(code, remembered[code]) for code in sorted(remembered)]

    def _is_served(
        self, node: Mapping[str, Any], vendor: Vendor, registration: Registration | Malformed | None
    ) -> bool:
        """Tell whether a running scheduler has taken the node in: it lists devices, and its kubelet offers some."""
        has_devices = isinstance(registration, Registration) and bool(registration.devices)
        return has_devices and count_allocatable(node, vendor.resources.count) > 0

    def _accept(self, nvidia: NodeDevices | Malformed | None) -> NodeDevices | Malformed | None:
        """Return NVIDIA's registration, or a mistake where its form is switched off."""
        if isinstance(nvidia, NodeDevices) and nvidia.registration.form == "colon" and not self._accepts_colon_form:
            problem = "is in the form of HAMi up to v2.7, which is switched off here"
            return Malformed(self._nvidia.node.register, "", problem)
        return nvidia

    def _explain(
        self, name: str, registration: NodeDevices | Malformed | None, step: RegistrationStep, *, is_registered: bool
    ) -> None:
        if isinstance(registration, Malformed):
            self._causes[name] = str(registration)
        elif is_registered or registration is None:
            self._causes.pop(name, None)
        else:
            self._causes[name] = describe_cause(step)

    def get_cause(self, name: str) -> str | None:
        """Get the mistake in the node's registration; None where there is none."""
        return self._causes.get(name)

    def forget(self, name: str) -> None:
        self._nvidia_devices.pop(name, None)
        self._others.pop(name, None)
        self._last.pop(name, None)
        self._causes.pop(name, None)
