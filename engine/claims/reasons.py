"""Reasons why a device is not picked for a request; counted as ``X/Y Reason`` like HAMi's.

A device may have several. They stand in the order in which they are reported: what no end of another pod changes comes
first, so that nobody waits for a device that does not fit.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class DeviceReason(StrEnum):
    """Reason why a device is not picked."""

    CLASS_NOT_FOUND = "ClassNotFound"
    POOL_OUTDATED = "PoolOutdated"
    POOL_INCOMPLETE = "PoolIncomplete"
    POOL_INVALID = "PoolInvalid"
    NOT_ON_NODE = "DeviceNotOnNode"
    NOT_JUDGED = "NotJudged"
    SELECTOR_ERROR = "SelectorError"
    CLASS_NOT_MATCHED = "ClassNotMatched"
    SELECTOR_NOT_MATCHED = "SelectorNotMatched"
    BINDING_NOT_SUPPORTED = "BindingNotSupported"
    CAPACITY_NOT_DEFINED = "CapacityNotDefined"
    CAPACITY_TOO_SMALL = "CapacityTooSmall"
    CAPACITY_NOT_ALLOWED = "CapacityNotAllowed"
    TAINTED = "DeviceTainted"
    IN_USE = "DeviceInUse"
    CAPACITY_EXHAUSTED = "CapacityExhausted"
    COUNTERS_EXHAUSTED = "CountersExhausted"
    CONSTRAINT_NOT_MET = "ConstraintNotMet"
    TAKEN_BY_POD = "DeviceTakenByPod"
    TOO_FEW = "TooFewDevices"


WORDS: Final[Mapping[DeviceReason, str]] = {
    DeviceReason.CLASS_NOT_FOUND: "The device class that the request names does not exist.",
    DeviceReason.POOL_OUTDATED: "The driver is replacing the pool, and its newer slices do not offer it to this node.",
    DeviceReason.POOL_INCOMPLETE: "Slices of the pool are missing, so no device is taken from it.",
    DeviceReason.POOL_INVALID: "Slices of the pool contradict each other, so no device is taken from it.",
    DeviceReason.NOT_ON_NODE: "The node does not reach the device.",
    DeviceReason.NOT_JUDGED: "Something about the device could not be worked out here; kube-scheduler may decide it.",
    DeviceReason.SELECTOR_ERROR: "A selector of the class or the request fails on the device, which ends the attempt.",
    DeviceReason.CLASS_NOT_MATCHED: "The device is not of the class that the request names.",
    DeviceReason.SELECTOR_NOT_MATCHED: "The device does not meet a selector of the request.",
    DeviceReason.BINDING_NOT_SUPPORTED: "The device has to be prepared before use, which the cluster does not support.",
    DeviceReason.CAPACITY_NOT_DEFINED: "The device has no such capacity as the request asks for.",
    DeviceReason.CAPACITY_TOO_SMALL: "All of the device's capacity is less than the request asks for.",
    DeviceReason.CAPACITY_NOT_ALLOWED: "The device does not hand out the amount that the request asks for.",
    DeviceReason.TAINTED: "The device has a taint that the request does not tolerate.",
    DeviceReason.IN_USE: "The device is allocated to another claim.",
    DeviceReason.CAPACITY_EXHAUSTED: "Other claims have taken too much of the device.",
    DeviceReason.COUNTERS_EXHAUSTED: "Other devices have used up counters that the device shares with them.",
    DeviceReason.CONSTRAINT_NOT_MET: "The device does not meet a constraint between the devices of the claim.",
    DeviceReason.TAKEN_BY_POD: "The device fits, and another request of the pod needs it.",
    DeviceReason.TOO_FEW: "The device fits, and too few others do with which the claim would be complete.",
}
"""Meaning of each reason."""
