"""Numbers that stand for verdicts about devices and nodes in arrays, and the word of each in events."""

from typing import Final

import numpy as np

from engine.hami.reason_codes import DEVICE_REASON_CODES, ReasonCode
from schemas import events

PICKED: Final = 0
FITS: Final = 1  # fits, but others were taken (a topology-aware pod collects every device that fits)
NOT_REACHED: Final = 2  # enough devices were taken before this one
FIRST_REASON: Final = 3
"""This number and all above are refusals."""

VERDICTS: Final[tuple[str, ...]] = (
    events.PICKED,
    events.FITS,
    events.NOT_REACHED,
    *(reason.value for reason in DEVICE_REASON_CODES),
)
"""Words of the device verdicts; a verdict's number is the index."""


def _get_number(reason: ReasonCode) -> int:
    return FIRST_REASON + DEVICE_REASON_CODES.index(reason)


# One constant per code that our scheduler gives: comparisons in loops need plain integers.
NOT_HEALTHY: Final = _get_number(ReasonCode.CARD_NOT_HEALTH)
CORDONED: Final = _get_number(ReasonCode.CARD_CORDONED)
TYPE_MISMATCH: Final = _get_number(ReasonCode.CARD_TYPE_MISMATCH)
NUMA_NOT_FIT: Final = _get_number(ReasonCode.NUMA_NOT_FIT)
UUID_MISMATCH: Final = _get_number(ReasonCode.CARD_UUID_MISMATCH)
TIME_SLICING_EXHAUSTED: Final = _get_number(ReasonCode.CARD_TIME_SLICING_EXHAUSTED)
EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: Final = _get_number(ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT)
RESOURCE_QUOTA_NOT_FIT: Final = _get_number(ReasonCode.RESOURCE_QUOTA_NOT_FIT)
INSUFFICIENT_MEMORY: Final = _get_number(ReasonCode.CARD_INSUFFICIENT_MEMORY)
INSUFFICIENT_CORE: Final = _get_number(ReasonCode.CARD_INSUFFICIENT_CORE)
COMPUTE_UNITS_EXHAUSTED: Final = _get_number(ReasonCode.CARD_COMPUTE_UNITS_EXHAUSTED)
MIG_TOPOLOGY_INFEASIBLE: Final = _get_number(ReasonCode.CARD_MIG_TOPOLOGY_INFEASIBLE)
CUSTOM_RULE: Final = _get_number(ReasonCode.CARD_NOT_FOUND_CUSTOM_FILTER_RULE)
MODE_NOT_FIT: Final = _get_number(ReasonCode.MODE_NOT_FIT)
UNHEALTHY: Final = _get_number(ReasonCode.CARD_UNHEALTHY)
QOS_MISMATCH: Final = _get_number(ReasonCode.CARD_QOS_POLICY_MISMATCH)
APP_CLASS_MISMATCH: Final = _get_number(ReasonCode.CARD_APP_CLASS_MISMATCH)
ALLOCATED_INSUFFICIENT: Final = _get_number(ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST)

NODE_UNKNOWN: Final = np.uint8(0)
NODE_REFUSED: Final = np.uint8(1)
NODE_FITS: Final = np.uint8(2)
NODE_PICKED: Final = np.uint8(3)
NODE_VERDICTS: Final[tuple[str, ...]] = (
    events.UNREGISTERED,
    events.REFUSED,
    events.FITS,
    events.PICKED,
)
"""Words of the node verdicts; a verdict's number is the index."""
