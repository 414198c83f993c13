"""Feature gates of Kubernetes that change what DynamicResources decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.filters.release import SchedulerRelease


@dataclass(frozen=True, slots=True)
class Gates:
    """Feature gates by what they allow. The defaults are those of Kubernetes 1.36.

    https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/
    """

    admin_access: bool = True
    """DRAAdminAccess: devices for monitoring that others use as well."""
    prioritized_list: bool = True
    """DRAPrioritizedList: alternatives in the order of preference."""
    device_taints: bool = True
    """DRADeviceTaints: taints that drivers publish in slices."""
    device_taint_rules: bool = False
    """DRADeviceTaintRules: taints that administrators put on devices."""
    partitionable_devices: bool = True
    """DRAPartitionableDevices: counters that devices of a pool share."""
    consumable_capacity: bool = True
    """DRAConsumableCapacity: devices that several claims share by capacity."""
    binding_conditions: bool = True
    """DRADeviceBindingConditions and DRAResourceClaimDeviceStatus: devices that become ready after allocation."""
    extended_resources: bool = True
    """DRAExtendedResource: extended resources that device classes serve."""
    list_attributes: bool = False
    """DRAListTypeAttributes: attributes with several values."""


DEFAULT_GATES: Final = Gates()

_DEFAULT_SINCE: Final[Mapping[str, int]] = {
    "DRAAdminAccess": 34,
    "DRAPrioritizedList": 34,
    "DRADeviceTaints": 36,
    "DRAPartitionableDevices": 36,
    "DRAConsumableCapacity": 36,
    "DRADeviceBindingConditions": 36,
    "DRAResourceClaimDeviceStatus": 33,
    "DRAExtendedResource": 36,
}
"""Minor releases of Kubernetes 1 since which a gate is on by default; others are off."""


def select_gates(release: SchedulerRelease) -> Gates:
    """Select the gates of a release."""

    def is_on(gate: str) -> bool:
        return release.gates.get(gate, release.minor >= _DEFAULT_SINCE.get(gate, release.minor + 1))

    return Gates(
        admin_access=is_on("DRAAdminAccess"),
        prioritized_list=is_on("DRAPrioritizedList"),
        device_taints=is_on("DRADeviceTaints"),
        device_taint_rules=is_on("DRADeviceTaintRules"),
        partitionable_devices=is_on("DRAPartitionableDevices"),
        consumable_capacity=is_on("DRAConsumableCapacity"),
        binding_conditions=is_on("DRADeviceBindingConditions") and is_on("DRAResourceClaimDeviceStatus"),
        extended_resources=is_on("DRAExtendedResource"),
        list_attributes=is_on("DRAListTypeAttributes"),
    )
