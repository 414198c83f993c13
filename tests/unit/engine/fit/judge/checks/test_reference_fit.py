"""One container on small nodes; verdicts by HAMi's rules, its `Fit` in `pkg/device/nvidia/device.go`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.fit.devices.quota import UNLIMITED, QuotaLeft
from engine.fit.judge.checks.reference_fit import (
    NO_PEAKS,
    DeviceState,
    Peaks,
    Pick,
    ReferenceFit,
    find_core_refusal,
    find_refusal,
    fit_node,
    is_over,
    raise_peaks,
)
from engine.fit.judge.checks.verdict_codes import VERDICTS
from engine.fit.judge.request.device_request import DeviceRequest
from engine.hami.mig import MigChoice, MigProfile, Placement

SMALL = MigProfile("1g.5gb", 4864, 14, 1, (Placement(0, 1), Placement(1, 1), Placement(2, 1)))
LARGE = MigProfile("2g.10gb", 9856, 28, 2, (Placement(0, 2),))


def a_device(position: int = 0, **fields: Any) -> DeviceState:
    """An unused device of 40,000 MiB that two containers may share."""
    plain: dict[str, Any] = {
        "uuid": f"GPU-{position}", "gate": 0, "accepts_uuid": True, "numa": 0, "total_slots": 2, "used_slots": 0,
        "total_cores": 100, "used_cores": 0, "total_memory": 40_000, "used_memory": 0,
    }  # fmt: skip
    return DeviceState(position, **(plain | fields))


def a_mig_device(position: int = 0, **fields: Any) -> DeviceState:
    return a_device(position, is_mig=True, profiles=(LARGE, SMALL), total_slots=7, **fields)


def a_request(count: int = 1, memory_mib: int = 10_000, cores: int = 30, **fields: Any) -> DeviceRequest:
    plain = {"memory_percentage": 101, "is_mutex": False, "numa_bind": False, "collects_all": False}
    return DeviceRequest(count, memory_mib, cores=cores, **(plain | fields))


def fit(
    devices: Sequence[DeviceState],
    request: DeviceRequest | None = None,
    left: QuotaLeft | None = None,
    scores: dict[str, dict[str, int]] | None = None,
) -> ReferenceFit:
    return fit_node(devices, request or a_request(), left or QuotaLeft(), scores or {})


def list_looks(result: ReferenceFit) -> list[tuple[int, str]]:
    return [(position, VERDICTS[verdict]) for position, verdict in result.looks]


def list_picked(result: ReferenceFit) -> list[int]:
    return [pick.device.position for pick in result.picks]


REFUSALS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("picked", {}, {}),
    ("CardNotHealth", {"gate": VERDICTS.index("CardNotHealth"), "accepts_uuid": False}, {}),
    ("CardUuidMismatch", {"accepts_uuid": False, "used_slots": 2}, {}),
    ("CardTimeSlicingExhausted", {"used_slots": 2}, {"is_mutex": True}),
    ("CardTimeSlicingExhausted", {"used_slots": 3}, {}),
    ("CardTimeSlicingExhausted", {"total_slots": 0}, {}),
    ("picked", {"used_slots": 1}, {}),
    ("ExclusiveDeviceAllocateConflict", {"used_slots": 1, "used_memory": 40_000}, {"is_mutex": True}),
    ("picked", {}, {"is_mutex": True}),
    ("picked", {"used_memory": 30_000}, {}),
    ("CardInsufficientMemory", {"used_memory": 30_001, "used_cores": 100}, {}),
    ("picked", {"used_memory": 30_000}, {"memory_mib": 0, "memory_percentage": 25}),
    ("CardInsufficientMemory", {"used_memory": 30_000}, {"memory_mib": 0, "memory_percentage": 26}),
    ("picked", {"used_cores": 70}, {}),
    ("CardInsufficientCore", {"used_cores": 71}, {}),
    # A container that wants all cores gets no device of 100 percent that another uses.
    ("ExclusiveDeviceAllocateConflict", {"used_slots": 1}, {"cores": 100}),
    ("picked", {}, {"cores": 100}),
    ("picked", {"used_slots": 1}, {"cores": 99}),
    ("picked", {"used_slots": 1, "total_cores": 200}, {"cores": 100}),
    # Nor does one without cores get a device whose cores are all taken.
    ("CardComputeUnitsExhausted", {"used_cores": 100}, {"cores": 0}),
    ("picked", {"used_cores": 99}, {"cores": 0}),
    ("picked", {"total_cores": 0}, {"cores": 0}),
]


@pytest.mark.parametrize(("verdict", "device", "request_fields"), REFUSALS)
def test_the_verdict_is_the_first_check_that_a_device_fails(
    verdict: str, device: dict[str, Any], request_fields: dict[str, Any]
) -> None:
    request, code = a_request(**request_fields), VERDICTS.index(verdict)
    assert find_refusal(a_device(**device), request, QuotaLeft(), [], None) == code
    result = fit([a_device(**device)], request)
    assert (list_looks(result), result.passed) == ([(0, verdict)], verdict == "picked")
    if "Core" in verdict or "Compute" in verdict or "cores" in request_fields:
        assert find_core_refusal(a_device(**device), request) == code


def test_devices_after_the_last_one_that_was_requested_are_not_reached() -> None:
    result = fit([a_device(number) for number in (1, 0, 3, 2)], a_request(2))
    assert list_looks(result) == [(1, "picked"), (0, "picked"), (3, "not reached"), (2, "not reached")]
    assert [(pick.device.position, pick.memory_mib, pick.cores, pick.mig) for pick in result.picks] == [
        (1, 10_000, 30, None),
        (0, 10_000, 30, None),
    ]
    assert result.passed
    assert result.out_of is None


def test_a_percentage_is_of_the_memory_of_the_device() -> None:
    result = fit([a_device(0, total_memory=1000), a_device(1)], a_request(2, 0, memory_percentage=50))
    assert [pick.memory_mib for pick in result.picks] == [500, 20_000]


def test_too_few_devices_are_allocated_in_vain() -> None:
    result = fit([a_device(0), a_device(1, used_cores=90), a_device(2)], a_request(3))
    in_vain = "AllocatedCardsInsufficientRequest"
    assert list_looks(result) == [(0, in_vain), (1, "CardInsufficientCore"), (2, in_vain)]
    assert not result.passed


def test_all_devices_come_from_one_numa_node() -> None:
    devices = [a_device(0, numa=0), a_device(1, numa=1), a_device(2, numa=1), a_device(3, numa=1)]
    result = fit(devices, a_request(2, numa_bind=True))
    assert list_looks(result) == [(0, "NumaNotFit"), (1, "picked"), (2, "picked"), (3, "not reached")]
    assert list_picked(result) == [1, 2]
    assert list_picked(fit(devices, a_request(2))) == [0, 1]


def test_a_device_that_the_gate_refuses_does_not_begin_a_numa_node() -> None:
    devices = [a_device(0), a_device(1, numa=1, gate=VERDICTS.index("CardCordoned")), a_device(2)]
    result = fit(devices, a_request(2, numa_bind=True))
    assert list_looks(result) == [(0, "picked"), (1, "CardCordoned"), (2, "picked")]


def test_a_topology_aware_pod_gives_devices_of_another_numa_node_no_reason() -> None:
    devices = [a_device(0, numa=0), a_device(1, numa=1), a_device(2, numa=1)]
    result = fit(devices, a_request(2, numa_bind=True, collects_all=True))
    assert list_looks(result) == [(0, "fits"), (1, "picked"), (2, "picked")]


def test_a_topology_aware_pod_takes_the_best_connected_devices() -> None:
    scores = {"GPU-0": {"GPU-1": 1, "GPU-2": 2}, "GPU-1": {"GPU-2": 9}, "GPU-2": {}}
    result = fit([a_device(number) for number in range(3)], a_request(2, collects_all=True), scores=scores)
    assert list_looks(result) == [(0, "fits"), (1, "picked"), (2, "picked")]
    assert list_picked(result) == [1, 2]


def test_a_quota_counts_the_devices_that_were_taken_before() -> None:
    devices = [a_device(number) for number in range(3)]
    in_vain, over = "AllocatedCardsInsufficientRequest", "ResourceQuotaNotFit"
    for left in (QuotaLeft(memory_mib=19_999), QuotaLeft(cores=59)):
        assert list_looks(fit(devices, a_request(2), left)) == [(0, in_vain), (1, over), (2, over)]
    for left in (QuotaLeft(memory_mib=20_000), QuotaLeft(cores=60)):
        assert fit(devices, a_request(2), left).passed


def test_a_quota_comes_before_memory_and_after_the_slots() -> None:
    left = QuotaLeft(cores=0)
    assert list_looks(fit([a_device(used_memory=40_000)], left=left)) == [(0, "ResourceQuotaNotFit")]
    assert list_looks(fit([a_device(used_slots=2)], left=left)) == [(0, "CardTimeSlicingExhausted")]


def a_pick(position: int, memory_mib: int, cores: int) -> Pick:
    return Pick(a_device(position), memory_mib, cores, None, 0)


@pytest.mark.parametrize(
    ("left", "peaks", "expected"),
    [
        (QuotaLeft(3000, 30), None, False),
        (QuotaLeft(2999, 30), None, True),
        (QuotaLeft(3000, 29), None, True),
        (QuotaLeft(UNLIMITED, 29), None, True),
        # Init containers run one after the other: on GPU-0 the larger of 1000 and 4000 MiB counts, of 10 and 5 percent.
        (QuotaLeft(6000, 30), {"GPU-0": (4000, 5)}, False),
        (QuotaLeft(5999, 30), {"GPU-0": (4000, 5)}, True),
        (QuotaLeft(6000, 29), {"GPU-0": (4000, 5)}, True),
        (QuotaLeft(3500, 31), {"GPU-9": (500, 1)}, False),
        (QuotaLeft(3499, 31), {"GPU-9": (500, 1)}, True),
    ],
)
def test_picks_are_over_a_quota_by_memory_or_cores(
    left: QuotaLeft, peaks: dict[str, tuple[int, int]] | None, expected: bool
) -> None:
    assert is_over(left, [a_pick(0, 1000, 10), a_pick(1, 2000, 20)], peaks) is expected


def test_peaks_limit_what_an_init_container_gets() -> None:
    left = QuotaLeft(memory_mib=10_000)
    full, free = [fit_node([a_device()], a_request(), left, {}, peaks) for peaks in ({"GPU-9": (1, 0)}, NO_PEAKS)]
    assert list_looks(full) == [(0, "ResourceQuotaNotFit")]
    assert free.passed


def test_the_largest_share_of_each_device_counts() -> None:
    before = {"GPU-0": (1000, 30), "GPU-2": (1, 1)}
    peaks = raise_peaks(before, [a_pick(0, 2000, 20), a_pick(1, 500, 0), a_pick(3, 0, 5)])
    assert peaks == {"GPU-0": (2000, 30), "GPU-1": (500, 0), "GPU-2": (1, 1), "GPU-3": (0, 5)}
    assert before == {"GPU-0": (1000, 30), "GPU-2": (1, 1)}


def test_peaks_are_kept_by_vendor_and_node() -> None:
    peaks = Peaks()
    assert peaks.get_peaks("NVIDIA", 7) == {}
    fits = [ReferenceFit(picks=[a_pick(0, 1000, 30)]), ReferenceFit()]
    peaks.add("NVIDIA", np.array([7, 8]), fits)
    peaks.add("NVIDIA", np.array([7]), [ReferenceFit(picks=[a_pick(0, 2000, 10)])])
    assert peaks.get_peaks("NVIDIA", 7) == {"GPU-0": (2000, 30)}
    assert peaks.get_peaks("NVIDIA", 8) == peaks.get_peaks("MLU", 7) == {}
    with pytest.raises(ValueError, match="zip"):
        peaks.add("NVIDIA", np.array([7]), fits)


def test_a_mig_device_gives_the_smallest_instance_with_enough_memory() -> None:
    small, large = (fit([a_mig_device()], a_request(memory_mib=amount)) for amount in (4864, 4865))
    # HAMi places instances of one slice as high as possible.
    assert [(pick.memory_mib, pick.cores, pick.mig) for pick in (*small.picks, *large.picks)] == [
        (4864, 14, MigChoice(SMALL, Placement(2, 1))),
        (9856, 28, MigChoice(LARGE, Placement(0, 2))),
    ]


def test_a_mig_device_gives_several_instances_of_one_container() -> None:
    device = a_mig_device()
    result = fit([device, a_device(1)], a_request(2, 1000))
    assert list_looks(result) == [(0, "picked"), (0, "picked"), (1, "not reached")]
    assert [pick.mig.placement for pick in result.picks if pick.mig] == [Placement(2, 1), Placement(1, 1)]
    assert [pick.look for pick in result.picks] == [0, 1]
    # The last instance changes nothing: nothing of this container comes after it.
    assert device.placements == [Placement(2, 1)]


def test_a_mig_device_without_a_free_placement_is_infeasible() -> None:
    infeasible, in_vain = "CardMigTopologyInfeasible", "AllocatedCardsInsufficientRequest"
    full = a_mig_device(placements=[Placement(0, 3)])
    assert list_looks(fit([full], a_request(memory_mib=1000))) == [(0, infeasible)]
    assert list_looks(fit([a_mig_device()], a_request(4, 1000))) == [(0, in_vain)] * 3 + [(0, infeasible)]


def test_a_topology_aware_pod_collects_every_instance_and_keeps_the_first() -> None:
    result = fit([a_mig_device(), a_device(1)], a_request(1, 1000, collects_all=True))
    infeasible = "CardMigTopologyInfeasible"
    assert list_looks(result) == [(0, "picked"), (0, "fits"), (0, "fits"), (0, infeasible), (1, "fits")]
    assert [pick.mig for pick in result.picks] == [MigChoice(SMALL, Placement(2, 1))]


def test_the_best_instance_of_a_mig_device_gets_its_first_placement() -> None:
    scores = {
        "GPU-0": {"GPU-0": 0, "GPU-1": 1}, "GPU-1": {"GPU-0": 1, "GPU-1": 9},
    }  # fmt: skip
    devices = [a_device(0), a_mig_device(1)]
    result = fit(devices, a_request(2, 1000, collects_all=True), scores=scores)
    assert [(pick.device.position, pick.mig and pick.mig.placement) for pick in result.picks] == [
        (1, Placement(2, 1)),
        (1, Placement(1, 1)),
    ]
    assert [verdict for position, verdict in list_looks(result) if position == 1] == [
        "picked", "picked", "fits", "CardMigTopologyInfeasible",
    ]  # fmt: skip


def test_dropped_picks_have_the_verdict_of_the_drop() -> None:
    result = ReferenceFit()
    look = result.look(a_device(4), 0)
    result.picks.append(Pick(a_device(4), 1, 1, None, look))
    result.drop_picks(VERDICTS.index("NumaNotFit"))
    assert list_looks(result) == [(4, "NumaNotFit")]
    assert result.picks == []
