"""Verdict codes of devices and nodes, as small integers in arrays and as words on the wire.

The words of refusals are HAMi's own (pkg/device/common/common.go), spelled as HAMi spells them.
"""

from typing import Final

import numpy as np

from schemas import events
from summaries import text

PICKED: Final = 0
FITS: Final = 1  # would do, but others were taken (topology-aware collects every feasible card)
NOT_REACHED: Final = 2  # the walk ended before this card

CARD_NOT_HEALTH: Final = 3
CARD_CORDONED: Final = 4
CARD_TYPE_MISMATCH: Final = 5
NUMA_NOT_FIT: Final = 6
CARD_UUID_MISMATCH: Final = 7
CARD_TIME_SLICING_EXHAUSTED: Final = 8
EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: Final = 9
RESOURCE_QUOTA_NOT_FIT: Final = 10
CARD_INSUFFICIENT_MEMORY: Final = 11
CARD_INSUFFICIENT_CORE: Final = 12
CARD_COMPUTE_UNITS_EXHAUSTED: Final = 13
CARD_MIG_TOPOLOGY_INFEASIBLE: Final = 14
ALLOCATED_CARDS_INSUFFICIENT_REQUEST: Final = 15

VERDICTS: Final[tuple[str, ...]] = (
    events.PICKED,
    events.FITS,
    events.NOT_REACHED,
    "CardNotHealth",
    "CardCordoned",
    "CardTypeMismatch",
    "NumaNotFit",
    "CardUuidMismatch",
    "CardTimeSlicingExhausted",
    "ExclusiveDeviceAllocateConflict",
    "ResourceQuotaNotFit",
    "CardInsufficientMemory",
    "CardInsufficientCore",
    "CardComputeUnitsExhausted",
    "CardMigTopologyInfeasible",
    "AllocatedCardsInsufficientRequest",
)
"""Index a device's verdict code here to get its word."""

FIRST_REASON: Final = CARD_NOT_HEALTH
"""Codes from here on are refusals."""

NODE_INSUFFICIENT_DEVICE: Final = "NodeInsufficientDevice"
NODE_UNREGISTERED: Final = text.NODE_UNREGISTERED

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
"""Index a node's verdict code here to get its word."""
