"""Devices that pods hold parts of: what is free of them, and why a request for parts does not get one."""

from typing import Any

import pytest

from engine.device_parts.divisible import DivisibleDevice, HeldPart, PartRequest, read_amount, read_mib
from engine.hami.reason_codes import ReasonCode


def a_part(cores_percent: int = 0, memory_mib: int = 0) -> HeldPart:
    return HeldPart("lab", "p", cores_percent, memory_mib)


def a_device(*shares: HeldPart, **fields: Any) -> DivisibleDevice:
    """A healthy device of 40,960 MiB."""
    return DivisibleDevice("n1", "gpu-0", "n1/gpu-0", **{"memory_mib": 40_960, **fields}, shares=shares)


@pytest.mark.parametrize(
    ("shares", "cores", "memory_mib"),
    [
        ((), 100, 40_960),
        ((a_part(30, 10_000), a_part(20, 960)), 50, 30_000),
        ((a_part(100, 40_960),), 0, 0),
        # More than there is counts as all of it.
        ((a_part(80, 30_000), a_part(80, 30_000)), 0, 0),
    ],
)
def test_what_pods_hold_is_not_free(shares: tuple[HeldPart, ...], cores: int, memory_mib: int) -> None:
    device = a_device(*shares)
    assert (device.free_cores, device.free_memory_mib) == (cores, memory_mib)
    assert device.held_cores == sum(share.cores_percent for share in shares)


def test_a_device_of_unknown_memory_has_none_free() -> None:
    assert a_device(memory_mib=None).free_memory_mib == 0


HALF = a_part(50, 20_480)


@pytest.mark.parametrize(
    ("device", "request_", "reason"),
    [
        (a_device(), {"cores_percent": 100, "memory_mib": 40_960}, None),
        (a_device(HALF), {"cores_percent": 50, "memory_mib": 20_480}, None),
        (a_device(HALF), {"cores_percent": 51}, "CardInsufficientCore"),
        (a_device(HALF), {"memory_mib": 20_481}, "CardInsufficientMemory"),
        (a_device(HALF), {"memory_percent": 50}, None),
        # 51 % of 40,960 MiB are 20,889.
        (a_device(HALF), {"memory_percent": 51}, "CardInsufficientMemory"),
        (a_device(HALF), {"cores_percent": 60, "memory_mib": 30_000}, "CardInsufficientMemory"),
        (a_device(HALF, slots=2), {"cores_percent": 1}, None),
        (a_device(HALF, HALF, slots=2), {"cores_percent": 0}, "CardTimeSlicingExhausted"),
        (a_device(slots=0), {"cores_percent": 1}, "CardTimeSlicingExhausted"),
        (a_device(is_healthy=False), {"cores_percent": 1}, "CardNotHealth"),
        (a_device(is_healthy=False), {"cores_percent": 1, "is_health_checked": False}, None),
        # A pod that wants a device for itself, and devices without free compute.
        (a_device(a_part(0, 1)), {"cores_percent": 100}, None),
        (a_device(a_part(0, 1)), {"cores_percent": 100, "is_alone_when_whole": True},
         "ExclusiveDeviceAllocateConflict"),
        (a_device(a_part(0, 1)), {"cores_percent": 99, "is_alone_when_whole": True}, None),
        (a_device(), {"cores_percent": 100, "is_alone_when_whole": True}, None),
        (a_device(a_part(100)), {"memory_mib": 1, "is_alone_when_whole": True}, "CardComputeUnitsExhausted"),
        (a_device(a_part(99)), {"memory_mib": 1, "is_alone_when_whole": True}, None),
        (a_device(a_part(100)), {"memory_mib": 1}, None),
    ],
)  # fmt: skip
def test_the_first_reason_why_a_device_does_not_meet_a_request(
    device: DivisibleDevice, request_: dict[str, Any], reason: str | None
) -> None:
    assert PartRequest("gpu", 1, **request_).find_reason(device) == reason


def test_a_device_of_another_model_is_refused_after_a_sick_one_and_before_a_full_one() -> None:
    request = PartRequest("gpu", 1, 1, find_mismatch=lambda _: ReasonCode.CARD_TYPE_MISMATCH)
    assert request.find_reason(a_device(slots=0)) == "CardTypeMismatch"
    assert request.find_reason(a_device(is_healthy=False)) == "CardNotHealth"


@pytest.mark.parametrize(
    ("request_", "asks_memory", "memory_mib", "is_beyond"),
    [
        ({"memory_mib": 40_960}, True, 40_960, False),
        ({"memory_mib": 40_961}, True, 40_961, True),
        ({"memory_percent": 25}, True, 10_240, False),
        ({"memory_percent": 101}, True, 41_369, True),
        ({"memory_percent": 0}, False, 0, False),
        ({"cores_percent": 10}, False, 0, False),
    ],
)
def test_memory_is_asked_in_mib_or_in_percent_of_the_device(
    request_: dict[str, Any], asks_memory: bool, memory_mib: int, is_beyond: bool
) -> None:
    request, device = PartRequest("gpu", 1, **request_), a_device(HALF)
    assert (request.asks_memory, request.measure_memory(device), request.is_beyond(device)) == (
        asks_memory, memory_mib, is_beyond,
    )  # fmt: skip
    assert PartRequest("gpu", 1, memory_mib=1).is_beyond(a_device(memory_mib=None))


@pytest.mark.parametrize(
    ("value", "amount", "mib"),
    [("2", 2, 0), ("1500m", 1, 0), ("3Mi", 3 * 2**20, 3), ("16Gi", 16 * 2**30, 16_384), (7, 7, 0), ("", None, None),
     (None, None, None), ("much", None, None)],
)  # fmt: skip
def test_quantities_are_read_in_whole_units(value: Any, amount: int | None, mib: int | None) -> None:
    assert (read_amount(value), read_mib(value)) == (amount, mib)
