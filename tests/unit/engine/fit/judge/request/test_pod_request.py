"""Requests of a pod's containers, as HAMi documents its resources.

https://project-hami.io/docs/userguide/configure: a container that names no memory gets all of a device's; limits come
before requests. Since v2.11 HAMi refuses a pod with an amount that it can't use; before, it drops the request.
"""

from dataclasses import replace
from typing import Any

import pytest

from engine.fit.judge.request.pod_request import (
    VendorRequest,
    count_containers,
    deny_asking,
    deny_containers,
    deny_requests,
    deny_size,
    list_requests,
    names_devices,
    read_request,
)
from engine.hami.releases import HamiRelease, choose_rules
from engine.hami.vendor_catalog import AMD, HYGON, METAX
from engine.hami.vendors import NVIDIA, Family, Resources, Vendor
from tests.support.builders.nodes_to_judge import a_pod, ask_for

INT32_MAX = 2_147_483_647
UNSET = 101
"""Percentage of the memory that a container does not name."""
NEW = replace(NVIDIA, rules=choose_rules(HamiRelease(2, 11)))
ALWAYS = {"restartPolicy": "Always"}


def read(vendor: Vendor = NVIDIA, count: Any = 1, **amounts: Any) -> VendorRequest:
    return read_request(ask_for(count, **amounts), is_init=False, vendor=vendor)


def change(vendor: Vendor = NVIDIA, **amounts: Any) -> Vendor:
    return replace(vendor, amounts=replace(vendor.amounts, **amounts))


DCU = {
    "name": "dcu",
    "resources": {"limits": {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000, "hygon.com/dcucores": 60}},
}


@pytest.mark.parametrize(
    ("amounts", "memory_mib", "percentage", "cores"),
    [
        ({}, 0, 100, 0),
        ({"gpumem": 3000}, 3000, UNSET, 0),
        ({"gpumem": "3000", "gpucores": "30"}, 3000, UNSET, 30),
        ({"gpumem": "3k"}, 3000, UNSET, 0),
        ({"gpumem": 0}, 0, 100, 0),
        ({"gpumem_percentage": 50}, 0, 50, 0),
        ({"gpumem_percentage": 1}, 0, 1, 0),
        ({"gpumem_percentage": 100}, 0, 100, 0),
        ({"gpumem_percentage": 150}, 0, 100, 0),
        ({"gpumem_percentage": 0}, 0, 100, 0),
        ({"gpumem_percentage": -5}, 0, 100, 0),
        ({"gpumem_percentage": "0.5"}, 0, 100, 0),
        ({"gpumem": 3000, "gpumem_percentage": 50}, 3000, 50, 0),
        ({"gpumem": 3000, "gpumem_percentage": 0}, 3000, UNSET, 0),
        ({"gpumem": INT32_MAX}, INT32_MAX, UNSET, 0),
        ({"gpucores": "0.5"}, 0, 100, 0),
        ({"gpucores": 200}, 0, 100, 200),
    ],
)
def test_a_container_names_memory_and_cores_of_each_device(
    amounts: dict[str, Any], memory_mib: int, percentage: int, cores: int
) -> None:
    assert read(count=2, **amounts) == VendorRequest(
        "main", vendor="NVIDIA", count=2, memory_mib=memory_mib, memory_percentage=percentage, cores=cores
    )


@pytest.mark.parametrize(
    ("count", "amounts"),
    [
        ("0.5", {}), ("x", {}), (None, {}), (1, {"gpumem": -1}), (1, {"gpumem": INT32_MAX + 1}),
        (1, {"gpumem": "1500m"}), (1, {"gpumem": "much"}),
    ],
)  # fmt: skip
def test_an_amount_that_is_not_usable_drops_the_request(count: Any, amounts: dict[str, Any]) -> None:
    request = read(count=count, **amounts)
    assert request == VendorRequest("main")
    assert not request.asks


def test_the_configuration_has_defaults_of_memory_and_cores() -> None:
    vendor = change(default_memory_mib=5000, default_cores=40)
    assert read(vendor) == VendorRequest("main", False, "NVIDIA", 1, 5000, UNSET, 40)
    assert read(vendor, gpumem_percentage=50) == VendorRequest("main", False, "NVIDIA", 1, 0, 50, 40)
    assert read(vendor, gpumem=100, gpucores=0) == VendorRequest("main", False, "NVIDIA", 1, 100, UNSET, 0)


@pytest.mark.parametrize(
    ("amount", "reads_bytes", "memory_mib"),
    [(16, False, 160), ("16", True, 160), ("1Gi", True, 1024), ("1536Ki", True, 1), (0, True, 0),
     ("3145728k", True, 3000), (INT32_MAX // 10, False, INT32_MAX // 10 * 10),
     (INT32_MAX // 10 + 1, False, None), ("1Ki", False, 10_240), (b"16", True, None), ("x", True, None)],
)  # fmt: skip
def test_memory_is_in_units_of_the_configuration_or_in_bytes(
    amount: Any, reads_bytes: bool, memory_mib: int | None
) -> None:
    request = read(change(memory_unit_mib=10, reads_bytes=reads_bytes), gpumem=amount)
    if memory_mib is None:
        assert request == VendorRequest("main")
    else:
        assert request.memory_mib == memory_mib


def test_a_unit_of_0_is_a_unit_of_1() -> None:
    assert read(change(memory_unit_mib=0), gpumem=7).memory_mib == 7


def test_memory_is_rounded_up_to_a_share_unless_the_container_names_cores() -> None:
    vendor = change(shares_mib=(1000, 4000))
    assert read(vendor, gpumem=1001).memory_mib == 4000
    assert read(vendor, gpumem=1001, gpucores=10).memory_mib == 1001


def test_limits_come_before_requests() -> None:
    resources = {
        "limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100},
        "requests": {"nvidia.com/gpumem": 200, "nvidia.com/gpucores": 30},
    }
    request = read_request({"name": "main", "resources": resources}, is_init=True, vendor=NVIDIA)
    assert request == VendorRequest("main", True, "NVIDIA", 1, 100, UNSET, 30)


@pytest.mark.parametrize(
    "container",
    [{}, {"name": "main"}, {"resources": None}, {"resources": "x"}, {"resources": {"limits": "x", "requests": []}}],
)
def test_a_container_without_amounts_asks_for_nothing(container: dict[str, Any]) -> None:
    request = read_request(container, is_init=False, vendor=NVIDIA)
    assert (request.name, request.asks, request.mistake) == (container.get("name", ""), False, "")


def test_other_vendors_have_rules_of_their_own() -> None:
    # Hygon's documents: a container gets all cores unless it names them.
    assert read_request(DCU, is_init=False, vendor=HYGON) == VendorRequest("dcu", False, "DCU", 1, 2000, 0, 60)
    dropped = {"name": "dcu", "resources": {"limits": {"hygon.com/dcunum": 1, "hygon.com/dcumem": -1}}}
    assert read_request(dropped, is_init=True, vendor=HYGON) == VendorRequest("dcu", True)


@pytest.mark.parametrize(
    ("count", "amounts", "mistake"),
    [
        (1, {"gpumem": 100, "gpucores": 100}, ""),
        (1, {"gpucores": 0}, ""),
        (INT32_MAX, {}, ""),
        (0, {"gpumem": -1, "gpucores": 101}, ""),
        (-1, {}, "nvidia.com/gpu: the count of devices is no whole number from 1 to 2147483647"),
        ("x", {}, "nvidia.com/gpu: the count of devices is no whole number from 1 to 2147483647"),
        (INT32_MAX + 1, {}, "nvidia.com/gpu: the count of devices is no whole number from 1 to 2147483647"),
        (1, {"gpucores": 101}, "nvidia.com/gpucores: the cores are no whole number from 0 to 100"),
        (1, {"gpucores": -1}, "nvidia.com/gpucores: the cores are no whole number from 0 to 100"),
        (1, {"gpucores": "0.5"}, "nvidia.com/gpucores: the cores are no whole number from 0 to 100"),
        (1, {"gpumem": -1}, "nvidia.com/gpumem: the amount can't be used"),
        (1, {"gpumem": "x"}, "nvidia.com/gpumem: the amount can't be used"),
    ],
)
def test_since_2_11_an_amount_that_is_not_usable_is_a_mistake(
    count: Any, amounts: dict[str, Any], mistake: str
) -> None:
    request = read(NEW, count, **amounts)
    assert request.mistake == mistake
    assert not read(NVIDIA, count, **amounts).mistake
    if mistake:
        assert request == VendorRequest("main", vendor="NVIDIA", mistake=mistake)


def test_a_container_that_names_no_count_makes_no_mistake() -> None:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpumem": "x", "nvidia.com/gpucores": 200}}}
    assert not read_request(container, is_init=False, vendor=NEW).mistake


@pytest.mark.parametrize("cores", [-1, INT32_MAX + 1, "x"])
def test_the_mistake_of_a_vendor_names_the_amount_that_is_not_usable(cores: Any) -> None:
    vendor = replace(NEW, resources=Resources("a.b/gpu", "a.b/mem", cores="a.b/cores"), family=Family.METAX_SGPU)
    container = {"name": "main", "resources": {"limits": {"a.b/gpu": 1, "a.b/mem": 1, "a.b/cores": cores}}}
    mistake = "" if cores == "x" else "a.b/cores: the amount can't be used"
    assert read_request(container, is_init=False, vendor=vendor).mistake == mistake


@pytest.mark.parametrize("cores", [0, -1, 101, "0.5"])
def test_no_share_of_the_compute_units_of_amd_is_empty(cores: Any) -> None:
    """HAMi's own words: "amd.com/gpucores must be an integer percentage between 1 and 100" (`amd/device.go`)."""
    vendor = replace(AMD, rules=NEW.rules)
    container = {"name": "main", "resources": {"limits": {"amd.com/gpu": 1, "amd.com/gpucores": cores}}}
    mistake = read_request(container, is_init=False, vendor=vendor).mistake
    assert mistake == "amd.com/gpucores: the cores are no whole number from 1 to 100"


def test_cores_of_other_families_may_be_more_than_100() -> None:
    """Metax' cores are of all devices together."""
    vendor = replace(METAX, rules=NEW.rules)
    limits = {"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 101}
    container = {"name": "main", "resources": {"limits": limits}}
    assert "from 0 to 100" not in read_request(container, is_init=False, vendor=vendor).mistake


def test_there_is_a_request_for_each_container_with_init_containers_first() -> None:
    pod = a_pod(ask_for(1, gpumem=10), {"name": "web"}, init=[{"name": "setup"}, ask_for(2, gpumem=20)])
    assert [(request.name, request.is_init, request.count) for request in list_requests(pod, (NVIDIA,))] == [
        ("setup", True, 0),
        ("main", True, 2),
        ("main", False, 1),
        ("web", False, 0),
    ]
    assert not any(request.is_further or request.is_sidecar for request in list_requests(pod, (NVIDIA,)))


@pytest.mark.parametrize(
    ("vendor", "kind", "is_init", "is_sidecar"),
    [(NVIDIA, "init", True, False), (NEW, "init", True, True), (NEW, "app", False, False)],
)
def test_since_2_11_an_init_container_that_always_restarts_is_a_sidecar(
    vendor: Vendor, kind: str, is_init: bool, is_sidecar: bool
) -> None:
    always = ask_for() | ALWAYS
    pod = a_pod({"name": "web"}, init=[always]) if kind == "init" else a_pod(always)
    request = list_requests(pod, (vendor,))[0]
    assert (request.is_init, request.is_sidecar) == (is_init, is_sidecar)
    assert request.is_lasting == (is_sidecar or not is_init)


@pytest.mark.parametrize("policy", [{}, {"restartPolicy": "OnFailure"}])
def test_any_other_init_container_ends_before_the_pod(policy: dict[str, str]) -> None:
    request = list_requests(a_pod({"name": "web"}, init=[ask_for() | policy]), (NEW,))[0]
    assert not request.is_sidecar
    assert not request.is_lasting


def merge(*containers: dict[str, Any]) -> dict[str, Any]:
    limits = {name: amount for container in containers for name, amount in container["resources"]["limits"].items()}
    return {"name": "main", "resources": {"limits": limits}}


def test_a_container_may_ask_several_vendors() -> None:
    first, second = list_requests(a_pod(merge(ask_for(2), DCU)), (NVIDIA, HYGON))
    assert (first.vendor, first.count, first.is_further) == ("NVIDIA", 2, False)
    assert (second.vendor, second.count, second.is_further) == ("DCU", 1, True)


def test_a_vendor_of_which_a_container_asks_nothing_is_left_out() -> None:
    (request,) = list_requests(a_pod(merge(ask_for(0), DCU)), (NVIDIA, HYGON))
    assert (request.vendor, request.is_further) == ("DCU", False)
    (request,) = list_requests(a_pod(merge(ask_for(0))), (HYGON, NVIDIA))
    assert (request.vendor, request.count) == ("NVIDIA", 0)
    (request,) = list_requests(a_pod(DCU), (NVIDIA, HYGON))
    assert request.vendor == "DCU"
    nothing = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 0, "hygon.com/dcunum": 0}}}
    (request,) = list_requests(a_pod(nothing), (NVIDIA, HYGON))
    assert not request.asks


def test_a_mistake_is_kept_next_to_requests_of_other_vendors() -> None:
    vendors = (NEW, replace(HYGON, rules=NEW.rules))
    malformed = {"resources": {"limits": {"nvidia.com/gpu": "x"}}}
    requests = list_requests(a_pod(merge(malformed, DCU)), vendors)
    assert [(bool(request.mistake), request.is_further) for request in requests] == [(True, False), (False, True)]


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"])
def test_count_memory_or_cores_name_a_vendor(name: str) -> None:
    container = {"name": "main", "resources": {"limits": {name: 1}}}
    assert names_devices(a_pod(container), (HYGON, NVIDIA))
    assert not names_devices(a_pod(container), (HYGON,))


@pytest.mark.parametrize(
    ("pod", "containers"),
    [({}, 0), ({"spec": None}, 0), ({"spec": {"containers": "x"}}, 0),
     ({"spec": {"containers": [{}, {}], "initContainers": [{}]}}, 3), ({"spec": {"containers": [None, "x"]}}, 2)],
)  # fmt: skip
def test_containers_are_counted_as_they_are_listed(pod: dict[str, Any], containers: int) -> None:
    assert count_containers(pod) == containers
    requests = list_requests(pod, (NVIDIA,))
    assert [request.asks for request in requests] == [False] * containers
    assert not names_devices(pod, (NVIDIA,))


@pytest.mark.parametrize("field", ["limits", "requests"])
@pytest.mark.parametrize("is_init", [False, True])
def test_a_pod_names_devices_in_limits_or_requests_of_any_container(field: str, is_init: bool) -> None:
    container = {"name": "main", "resources": {field: {"nvidia.com/priority": 0}}}
    pod = a_pod({"name": "web"}, container) if not is_init else a_pod({"name": "web"}, init=[container])
    assert names_devices(pod, (NVIDIA,))
    assert not names_devices(a_pod({"name": "web", "resources": {field: {"cpu": 1}}}), (NVIDIA,))


def test_no_more_than_16_containers_of_a_pod_ask_for_devices() -> None:
    assert deny_asking(16) == ""
    assert deny_asking(17) == "17 containers of the pod ask for devices, 16 may: divide it into several pods"
    asking, other = VendorRequest("a", count=1), VendorRequest("b")
    assert deny_requests([asking] * 16 + [other] * 3) == ""
    assert deny_requests([asking] * 17) == deny_asking(17)


def test_no_more_than_500_containers_of_a_pod_are_judged() -> None:
    denial = "the pod has 501 containers, 500 are judged at most: divide it into several pods"
    assert (deny_containers(500), deny_containers(501)) == ("", denial)
    assert (deny_requests([VendorRequest("b")] * 500), deny_requests([VendorRequest("b")] * 501)) == ("", denial)
    assert deny_size({"spec": {"containers": [{}] * 501}}) == denial
    assert deny_size({"spec": {"containers": [{}] * 500}}) == ""


def test_no_more_than_10000_quantities_of_a_pod_are_read() -> None:
    limits = {f"a.b/{number}": 1 for number in range(100)}
    full = {"resources": {"limits": limits, "requests": limits}}
    assert deny_size({"spec": {"containers": [full] * 50}}) == ""
    more = {"resources": {"limits": {"cpu": 1}}}
    assert deny_size({"spec": {"containers": [full] * 50, "initContainers": [more]}}) == (
        "the containers of the pod name 10001 quantities of resources, 10000 are read at most"
    )
