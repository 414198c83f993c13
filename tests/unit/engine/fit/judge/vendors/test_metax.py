"""Metax's shared devices by the steps of HAMi's ``metax/sdevice.go``, and the rule of one device for whole ones."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.fit.judge.checks.reference_fit import DeviceState
from engine.fit.judge.vendors.metax import fit_one_device, fit_sgpu
from engine.hami.vendor_catalog import METAX, METAX_GPU
from tests.support.builders.vendor_devices import a_device, a_node_request, list_picks, list_verdicts

CLASS, QOS = "metax-tech.com/sgpu-app-class", "metax-tech.com/sgpu-qos-policy"
ONLINE, OFFLINE, PLAIN = {CLASS: "online"}, {CLASS: "offline"}, dict[str, str]()
CLASS_MISMATCH, QOS_MISMATCH = "CardAppClassMismatch", "CardQosPolicyMismatch"


def a_used_device(*classes: str, qos: str = "", **fields: Any) -> DeviceState:
    plain: dict[str, Any] = {"used_slots": 1, "used_cores": 10, "used_memory": 100, "classes": classes}
    return a_device(0, **plain | {"extra": {"QosPolicy": qos}} | fields)


def judge(device: DeviceState, texts: dict[str, str], *, cores: int = 10, **request: Any) -> str:
    """Judge one device for one pod."""
    asking = a_node_request(METAX, 1, cores=cores, texts=texts, **{"memory_mib": 100} | request)
    return list_verdicts(fit_sgpu([device], asking))[0]


@pytest.mark.parametrize(
    ("classes", "plain", "online", "offline"),
    [
        # Pods with a class and pods without one do not share a device.
        ((), "picked", CLASS_MISMATCH, CLASS_MISMATCH),
        (("offline",), CLASS_MISMATCH, "picked", "picked"),
        # An offline pod is suspended next to an online one, and does not join it.
        (("online",), CLASS_MISMATCH, "picked", CLASS_MISMATCH),
        (("offline", "online"), CLASS_MISMATCH, "picked", CLASS_MISMATCH),
    ],
)
def test_classes_of_pods_share_devices(classes: tuple[str, ...], plain: str, online: str, offline: str) -> None:
    device = a_used_device(*classes)
    assert [judge(device, texts) for texts in (PLAIN, ONLINE, OFFLINE)] == [plain, online, offline]
    # A free device takes any pod, whatever was on it.
    free = a_used_device(*classes, used_slots=0)
    assert [judge(free, texts) for texts in (PLAIN, ONLINE, OFFLINE)] == ["picked"] * 3


@pytest.mark.parametrize(
    ("device", "texts", "cores", "verdict"),
    [
        (a_used_device(qos="fixed-share"), {QOS: "fixed-share"}, 10, "picked"),
        (a_used_device(qos="fixed-share"), {QOS: "burst-share"}, 10, QOS_MISMATCH),
        (a_used_device(qos="fixed-share"), {}, 10, QOS_MISMATCH),
        (a_used_device(qos=""), {QOS: "burst-share"}, 10, "picked"),
        (a_used_device(extra={}), {QOS: "burst-share"}, 10, "picked"),
        (a_used_device(qos="fixed-share", used_slots=0), {QOS: "burst-share"}, 10, "picked"),
        # All cores want the device for themselves, and no policy; the device is in use.
        (a_used_device(qos="fixed-share", used_cores=0), {QOS: "burst-share"}, 100, "ExclusiveDeviceAllocateConflict"),
        # An online pod has no policy.
        (a_used_device("online", qos="fixed-share"), {CLASS: "online", QOS: "burst-share"}, 10, "picked"),
        (a_used_device("offline", qos="fixed-share"), {CLASS: "offline", QOS: "burst-share"}, 10, QOS_MISMATCH),
    ],
)
def test_a_device_in_use_has_one_policy(device: DeviceState, texts: dict[str, str], cores: int, verdict: str) -> None:
    assert judge(device, texts, cores=cores) == verdict


@pytest.mark.parametrize(
    ("device", "request_fields", "verdict"),
    [
        (a_device(0, gate=3), {}, "CardUnhealthy"),
        (a_device(0, accepts_uuid=False), {}, "CardUuidMismatch"),
        (a_device(0, total_slots=1, used_slots=1), {}, "CardTimeSlicingExhausted"),
        (a_device(0, used_slots=1), {"is_mutex": True}, "ExclusiveDeviceAllocateConflict"),
        (a_device(0, used_memory=900), {"memory_mib": 100}, "picked"),
        (a_device(0, used_memory=901), {"memory_mib": 100}, "CardInsufficientMemory"),
        (a_device(0, used_memory=500), {"memory_mib": 0, "percent": 50}, "picked"),
        (a_device(0, used_memory=501), {"memory_mib": 0, "percent": 50}, "CardInsufficientMemory"),
        (a_device(0, used_cores=90), {"cores": 10}, "picked"),
        (a_device(0, used_cores=91), {"cores": 10}, "CardInsufficientCore"),
        (a_device(0, used_cores=100), {"cores": 0}, "CardComputeUnitsExhausted"),
        # An online pod takes cores as it needs them.
        (a_device(0, used_cores=91), {"cores": 10, "texts": ONLINE}, "picked"),
        (a_device(0, used_cores=100), {"cores": 0, "texts": ONLINE}, "picked"),
        (a_device(0, used_cores=91), {"cores": 10, "texts": OFFLINE}, "CardInsufficientCore"),
    ],
)
def test_a_device_is_checked_in_the_order_of_hami(
    device: DeviceState, request_fields: dict[str, Any], verdict: str
) -> None:
    assert judge(device, **{"texts": PLAIN} | request_fields) == verdict


@pytest.mark.parametrize(("texts", "cores"), [(PLAIN, 30), (OFFLINE, 30), (ONLINE, 0)])
def test_an_online_pod_gets_no_cores_of_its_own(texts: dict[str, str], cores: int) -> None:
    fit = fit_sgpu([a_device(0)], a_node_request(METAX, 1, percent=20, cores=30, texts=texts))
    assert [(pick.memory_mib, pick.cores) for pick in fit.picks] == [(200, cores)]


def a_busy_device(position: int, *classes: str) -> DeviceState:
    return a_device(position, used_slots=len(classes), classes=classes)


@pytest.mark.parametrize(
    ("devices", "pick"),
    [
        # The device with the fewest online pods, of those the one with the fewest offline ones.
        ([a_busy_device(0, "online"), a_busy_device(1)], 1),
        ([a_busy_device(0, "online", "online"), a_busy_device(1, "online", "offline")], 1),
        ([a_busy_device(0, "online", "offline"), a_busy_device(1, "online")], 1),
        # Last come devices with only offline pods, which would be suspended; of them that with the fewest.
        ([a_busy_device(0, "offline"), a_busy_device(1, "online", "online")], 1),
        ([a_busy_device(0, "offline", "offline"), a_busy_device(1, "offline")], 1),
        ([a_busy_device(0), a_busy_device(1)], 0),
    ],
)
def test_an_online_pod_disturbs_as_few_pods_as_it_can(devices: list[DeviceState], pick: int) -> None:
    fit = fit_sgpu(devices, a_node_request(METAX, 1, texts=ONLINE))
    assert list_picks(fit) == [pick]
    assert list_verdicts(fit) == {pick: "picked", 1 - pick: "fits"}
    # An offline pod takes the first that suits it.
    offline = fit_sgpu([a_device(0), a_device(1)], a_node_request(METAX, 1, cores=100, texts=OFFLINE))
    assert list_picks(offline) == [0]


def list_zoned(*zones: Any) -> list[DeviceState]:
    return [a_device(position, extra={"LinkZone": zone}) for position, zone in enumerate(zones)]


@pytest.mark.parametrize(
    ("zones", "count", "picks"),
    [
        # The smallest zone that has enough.
        ((1, 1, 1, 2, 2), 2, [3, 4]),
        ((1, 1, 1, 2, 2), 3, [0, 1, 2]),
        ((1, 2, 2, 2), 1, [0]),
        # Zone after zone, the smallest first.
        ((1, 1, 1, 2, 2), 4, [3, 4, 0, 1]),
        # Devices without a zone come last.
        ((0, 1, 2, 2, -1), 4, [1, 2, 3, 0]),
        ((0, 0, 1), 2, [2, 0]),
        (("a", 0, 1, 1), 2, [2, 3]),
        ((0, 0, 0), 2, [0, 1]),
    ],
)
def test_whole_devices_are_taken_of_one_zone(zones: Sequence[Any], count: int, picks: list[int]) -> None:
    fit = fit_sgpu(list_zoned(*zones), a_node_request(METAX, count, cores=100))
    assert list_picks(fit) == picks
    # Parts of devices are taken in turn.
    assert list_picks(fit_sgpu(list_zoned(*zones), a_node_request(METAX, count, cores=99))) == list(range(count))


def test_a_request_for_all_devices_takes_them_in_turn() -> None:
    assert list_picks(fit_sgpu(list_zoned(1, 2, 2), a_node_request(METAX, 3, cores=100))) == [0, 1, 2]


def test_too_few_devices_are_given_back() -> None:
    fit = fit_sgpu([a_device(0), a_device(1, gate=3)], a_node_request(METAX, 2))
    assert (list_picks(fit), fit.passed) == ([], False)
    assert list_verdicts(fit) == {0: "AllocatedCardsInsufficientRequest", 1: "CardUnhealthy"}


@pytest.mark.parametrize(
    ("earlier", "count", "picks", "verdicts"),
    [
        ([], 1, [0], {0: "picked", 1: "not reached"}),
        ([], 2, [0, 1], {0: "picked", 1: "picked"}),
        # A container gets only the device that all containers before it got.
        ([[1]], 1, [1], {0: "CardNotFoundCustomFilterRule", 1: "picked"}),
        ([[1], [1]], 1, [1], {0: "CardNotFoundCustomFilterRule", 1: "picked"}),
        ([[0], [1]], 1, [], {0: "CardNotFoundCustomFilterRule", 1: "CardNotFoundCustomFilterRule"}),
        ([[1]], 2, [], {0: "CardNotFoundCustomFilterRule", 1: "AllocatedCardsInsufficientRequest"}),
    ],
)
def test_containers_of_a_pod_get_the_same_whole_device(
    earlier: list[list[int]], count: int, picks: list[int], verdicts: dict[int, str]
) -> None:
    fit = fit_one_device([a_device(0), a_device(1)], a_node_request(METAX_GPU, count, percent=10, earlier=earlier))
    assert (list_picks(fit), list_verdicts(fit)) == (picks, verdicts)
