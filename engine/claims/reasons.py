"""Reasons why a device is not picked for a request; counted as ``X/Y Reason`` like HAMi's.

A device may have several. They stand in the order in which they are reported: what no end of another pod changes comes
first, so that nobody waits for a device that does not fit. Their meaning, likely cause and remedy are in
`schemas/reasons.toml`, in the same order.
"""

from enum import StrEnum


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
