"""HAMi's reason codes, spelled as HAMi spells them (`pkg/device/common/common.go`, `pkg/scheduler/event.go`).

Their meaning, likely cause and remedy are in `schemas/reasons.toml`, in the same order. The list is open: other
schedulers and later versions use codes that are not here.
"""

from enum import StrEnum
from typing import Final


class ReasonCode(StrEnum):
    # Why a device is refused; counted as `X/Y Code`
    CARD_NOT_HEALTH = "CardNotHealth"
    CARD_CORDONED = "CardCordoned"
    CARD_TYPE_MISMATCH = "CardTypeMismatch"
    NUMA_NOT_FIT = "NumaNotFit"
    CARD_UUID_MISMATCH = "CardUuidMismatch"
    CARD_TIME_SLICING_EXHAUSTED = "CardTimeSlicingExhausted"
    EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT = "ExclusiveDeviceAllocateConflict"
    RESOURCE_QUOTA_NOT_FIT = "ResourceQuotaNotFit"
    CARD_INSUFFICIENT_MEMORY = "CardInsufficientMemory"
    CARD_INSUFFICIENT_CORE = "CardInsufficientCore"
    CARD_COMPUTE_UNITS_EXHAUSTED = "CardComputeUnitsExhausted"
    CARD_MIG_TOPOLOGY_INFEASIBLE = "CardMigTopologyInfeasible"
    CARD_NOT_FOUND_CUSTOM_FILTER_RULE = "CardNotFoundCustomFilterRule"
    ALLOCATED_CARDS_INSUFFICIENT_REQUEST = "AllocatedCardsInsufficientRequest"
    MODE_NOT_FIT = "ModeNotFit"
    CARD_UNHEALTHY = "CardUnhealthy"
    CARD_QOS_POLICY_MISMATCH = "CardQosPolicyMismatch"
    CARD_APP_CLASS_MISMATCH = "CardAppClassMismatch"

    # Verdicts about a node
    NODE_INSUFFICIENT_DEVICE = "NodeInsufficientDevice"
    NODE_UNFIT_POD = "NodeUnfitPod"
    NODE_UNREGISTERED = "node unregistered"
    NODE_OF_ANOTHER_SCHEDULER = "NodeOfAnotherScheduler"  # schedulerlog's own
    DEVICE_TYPE_NOT_FOUND = "Device type not found"
    NODE_FIT_POD = "NodeFitPod"

    # Events of a pod, and the errors in them
    FILTERING_FAILED = "FilteringFailed"
    FILTERING_SUCCEED = "FilteringSucceed"
    BINDING_FAILED = "BindingFailed"
    BINDING_SUCCEED = "BindingSucceed"
    NODE_LOCK_CONTENTION = "node lock contention"
    CALC_SCORE_FAILED = "calcScore failed"


_ALL: Final = tuple(ReasonCode)
# By position, so that a new code above the first verdict about a node counts as one of a device.
DEVICE_REASON_CODES: Final = _ALL[: _ALL.index(ReasonCode.NODE_INSUFFICIENT_DEVICE)]
"""Codes that refuse a device."""
EXTENDER_REASON_CODES: Final = frozenset(
    (
        *DEVICE_REASON_CODES, ReasonCode.NODE_INSUFFICIENT_DEVICE, ReasonCode.NODE_UNREGISTERED,
        ReasonCode.NODE_OF_ANOTHER_SCHEDULER, ReasonCode.NODE_UNFIT_POD,
    )
)  # fmt: skip
"""Codes under which HAMi's extender refuses a node that kube-scheduler's filters let pass."""
