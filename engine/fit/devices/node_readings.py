"""Devices that count for each node, from its Node objects over time, and the cause where none do. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engine.fit.devices.registration_step import (
    LastLook,
    RegistrationStep,
    choose_step,
    choose_vendor_step,
    describe_cause,
)
from engine.hami.handshake import count_allocatable
from engine.hami.json_values import to_mapping
from engine.hami.node_registration import NodeDevices, NodeReading, VendorDevices, combine_devices, read_node
from engine.hami.registration import Malformed, Registration
from engine.hami.vendors import NVIDIA, Family, Vendors, find_vendor


class NodeReadings:
    """Memory of each node, as far as HAMi's rules need it at the node's next change.

    accepts_colon_form: whether NVIDIA's annotation of HAMi <= v2.7 counts (v2.10 refuses it).
    """

    def __init__(self, vendors: Vendors, *, accepts_colon_form: bool = True) -> None:
        self._vendors, self._accepts_colon_form = vendors, accepts_colon_form
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
            if step is RegistrationStep.DROP:
                remembered.pop(code, None)
            elif step is RegistrationStep.READ and isinstance(registration, Registration):
                remembered[code] = registration
        return [VendorDevices(code, remembered[code]) for code in sorted(remembered)]

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
