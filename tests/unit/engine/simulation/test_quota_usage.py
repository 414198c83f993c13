"""Amounts that pods and claims count in a ResourceQuota, and the pods that its scopes count.

The rules are those of Kubernetes' documentation: "Resource Quotas" (compute resources, extended resources, object
counts, scopes) and "Dynamic Resource Allocation" (devices of a class; a request for all devices counts 32).
"""

from typing import Any

import pytest

from engine.simulation.quota_usage import (
    counts_pod,
    find_missing_amounts,
    get_resource,
    is_entry_of_pods,
    list_scopes,
    measure_claim,
    measure_pod,
)
from schemas.json_types import Json

UNIT = 10**9
"""Amounts are in billionths."""
GI = 2**30


def a_container(requests: Json | None = None, limits: Json | None = None, name: str = "main") -> Json:
    resources = {"requests": requests or {}} | ({"limits": limits} if limits else {})
    return {"name": name, "resources": resources}


def a_pod(*containers: Json, phase: str = "Pending", **spec: Any) -> Json:
    return {
        "metadata": {"name": "p", "namespace": "lab"}, "spec": {"containers": list(containers), **spec},
        "status": {"phase": phase},
    }  # fmt: skip


def test_a_pod_counts_its_requests_under_both_names_and_limits_of_native_resources() -> None:
    requests = {"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": 2}
    limits = {"cpu": "1", "memory": "2Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": 2}
    assert measure_pod(a_pod(a_container(requests, limits))) == {
        "count/pods": UNIT, "pods": UNIT,
        "cpu": UNIT // 2, "requests.cpu": UNIT // 2, "limits.cpu": UNIT,
        "memory": 2 * GI * UNIT, "requests.memory": 2 * GI * UNIT, "limits.memory": 2 * GI * UNIT,
        "ephemeral-storage": GI * UNIT, "requests.ephemeral-storage": GI * UNIT,
        "hugepages-2Mi": 2**22 * UNIT, "requests.hugepages-2Mi": 2**22 * UNIT,
        # Extended resources are counted by their requests only, and there is no limit of huge pages.
        "requests.nvidia.com/gpu": 2 * UNIT,
    }  # fmt: skip


@pytest.mark.parametrize(("phase", "usage"), [
    ("Running", {"count/pods": UNIT, "pods": UNIT, "cpu": UNIT, "requests.cpu": UNIT}),
    # A pod that has ended is still an object.
    ("Succeeded", {"count/pods": UNIT}),
    ("Failed", {"count/pods": UNIT}),
])  # fmt: skip
def test_a_pod_that_has_ended_uses_nothing(phase: str, usage: Json) -> None:
    assert measure_pod(a_pod(a_container({"cpu": "1"}), phase=phase)) == usage


def a_claim(*requests: Json) -> Json:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests)}}}


def an_exact(name: str = "gpu", **fields: Any) -> Json:
    return {"exactly": {"deviceClassName": name, **fields}}


def a_choice(name: str = "gpu", **fields: Any) -> Json:
    return {"name": name, "deviceClassName": name, **fields}


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        ([an_exact()], {"gpu": 1}),
        ([an_exact(count=3)], {"gpu": 3}),
        # Of v1beta1, where the request has the fields itself.
        ([{"deviceClassName": "gpu", "count": 2}], {"gpu": 2}),
        ([an_exact(count=3), an_exact(count=2), an_exact("nic")], {"gpu": 5, "nic": 1}),
        ([an_exact(allocationMode="All")], {"gpu": 32}),
        ([an_exact(allocationMode="ExactCount", count=4)], {"gpu": 4}),
        # A count that the API server would refuse is one device.
        ([an_exact(count=0)], {"gpu": 1}),
        ([an_exact(count=-1)], {"gpu": 1}),
        ([an_exact(count=True)], {"gpu": 1}),
        # One of the alternatives is taken: of each class the largest.
        ([{"firstAvailable": [a_choice(count=2), a_choice(count=5), a_choice("nic")]}], {"gpu": 5, "nic": 1}),
        ([{"firstAvailable": [a_choice(count=5), a_choice(count=2)]}, an_exact()], {"gpu": 6}),
        ([], {}),
    ],
)
def test_a_claim_counts_the_devices_that_it_may_get_by_class(requests: list[Json], devices: dict[str, int]) -> None:
    expected = {"count/resourceclaims.resource.k8s.io": UNIT}
    for name, count in devices.items():
        expected[f"{name}.deviceclass.resource.k8s.io/devices"] = count * UNIT
        expected[f"requests.deviceclass.resource.kubernetes.io/{name}"] = count * UNIT
    assert measure_claim(a_claim(*requests), {}) == expected


def test_devices_of_a_class_that_serves_an_extended_resource_count_as_that_resource_too() -> None:
    classes: dict[str, Json] = {"gpu": {"spec": {"extendedResourceName": "example.com/gpu"}}, "nic": {"spec": {}}}
    usage = measure_claim(a_claim(an_exact(count=2), an_exact("nic")), classes)
    assert usage["requests.example.com/gpu"] == 2 * UNIT
    assert [entry for entry in usage if entry.startswith("requests.")] == [
        "requests.deviceclass.resource.kubernetes.io/gpu", "requests.example.com/gpu",
        "requests.deviceclass.resource.kubernetes.io/nic",
    ]  # fmt: skip


BARE = a_container(name="bare")
FULL = a_container({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "full")


@pytest.mark.parametrize(
    ("pod", "entries", "missing"),
    [
        (a_pod(FULL, BARE), ["cpu"], {"cpu": ["bare"]}),
        (a_pod(FULL, BARE), ["requests.memory"], {"requests.memory": ["bare"]}),
        (a_pod(a_container({"cpu": "1"})), ["limits.cpu", "requests.cpu"], {"limits.cpu": ["main"]}),
        (a_pod(FULL, initContainers=[BARE]), ["limits.memory"], {"limits.memory": ["bare"]}),
        (a_pod(BARE, BARE | {"name": "other"}), ["cpu"], {"cpu": ["bare", "other"]}),
        # No entry of these makes an amount a duty.
        (a_pod(BARE), ["pods", "requests.nvidia.com/gpu", "ephemeral-storage"], {}),
        (a_pod(FULL), ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"], {}),
        # Amounts of the pod itself, as of 1.34.
        (a_pod(BARE, resources={"requests": {"cpu": "1"}}), ["cpu"], {}),
        (a_pod(BARE, resources={"limits": {"cpu": "1"}}), ["cpu"], {}),
        (a_pod(BARE, resources={"requests": {}}), ["cpu"], {"cpu": ["bare"]}),
    ],
)
def test_every_container_names_the_amounts_of_cpu_and_memory_that_a_quota_counts(
    pod: Json, entries: list[str], missing: dict[str, list[str]]
) -> None:
    assert find_missing_amounts(pod, entries) == missing


@pytest.mark.parametrize(
    ("entry", "resource", "is_of_pods"),
    [
        ("cpu", "cpu", True),
        ("limits.memory", "memory", True),
        ("requests.ephemeral-storage", "ephemeral-storage", True),
        ("pods", "pods", True),
        ("count/pods", "count/pods", True),
        ("hugepages-2Mi", "hugepages-2Mi", True),
        ("requests.hugepages-1Gi", "hugepages-1Gi", True),
        ("requests.nvidia.com/gpu", "nvidia.com/gpu", True),
        ("requests.deviceclass.resource.kubernetes.io/gpu", "deviceclass.resource.kubernetes.io/gpu", True),
        # Extended resources have no limits, and those of Kubernetes' own domain are not extended.
        ("limits.nvidia.com/gpu", "nvidia.com/gpu", False),
        ("nvidia.com/gpu", "nvidia.com/gpu", False),
        ("requests.kubernetes.io/x", "kubernetes.io/x", False),
        ("requests.storage", "storage", False),
        ("count/services", "count/services", False),
        ("services", "services", False),
    ],
)
def test_an_entry_names_a_resource_of_pods_or_of_other_objects(entry: str, resource: str, is_of_pods: bool) -> None:
    assert (get_resource(entry), is_entry_of_pods(entry)) == (resource, is_of_pods)


def a_quota(*scopes: str, terms: tuple[Json, ...] = ()) -> Json:
    return {"spec": {"scopes": list(scopes), "scopeSelector": {"matchExpressions": list(terms)}}}


def a_term(operator: str, *values: str, scope: str = "PriorityClass") -> Json:
    return {"scopeName": scope, "operator": operator, "values": list(values)}


ACROSS = {"topologyKey": "zone", "namespaceSelector": {}}
WITHIN = {"topologyKey": "zone"}
REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))


@pytest.mark.parametrize(
    ("scope", "pod", "is_counted"),
    [
        ("Terminating", a_pod(activeDeadlineSeconds=60), True),
        ("Terminating", a_pod(activeDeadlineSeconds=0), True),
        ("Terminating", a_pod(), False),
        ("NotTerminating", a_pod(activeDeadlineSeconds=60), False),
        ("NotTerminating", a_pod(), True),
        ("BestEffort", a_pod(BARE), True),
        ("BestEffort", a_pod(BARE, a_container({"cpu": "1m"})), False),
        ("BestEffort", a_pod(a_container(limits={"memory": "1Mi"})), False),
        ("BestEffort", a_pod(BARE, initContainers=[a_container({"cpu": "1"})]), False),
        ("BestEffort", a_pod(BARE, resources={"requests": {"cpu": "1"}}), False),
        # Only CPU and memory decide about the class of a pod, and 0 is none of them.
        ("BestEffort", a_pod(a_container({"nvidia.com/gpu": 1, "cpu": "0"})), True),
        ("BestEffort", a_pod(a_container({"cpu": "much"})), False),
        ("NotBestEffort", a_pod(BARE), False),
        ("NotBestEffort", a_pod(FULL), True),
        ("CrossNamespacePodAffinity", a_pod(affinity={"podAffinity": {REQUIRED: [ACROSS]}}), True),
        ("CrossNamespacePodAffinity", a_pod(affinity={"podAntiAffinity": {REQUIRED: [WITHIN, ACROSS]}}), True),
        (
            "CrossNamespacePodAffinity",
            a_pod(affinity={"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": ACROSS}]}}), True,
        ),
        (
            "CrossNamespacePodAffinity",
            a_pod(affinity={"podAffinity": {REQUIRED: [WITHIN | {"namespaces": ["other"]}]}}), True,
        ),
        ("CrossNamespacePodAffinity", a_pod(affinity={"podAffinity": {REQUIRED: [WITHIN]}}), False),
        ("CrossNamespacePodAffinity", a_pod(), False),
        ("OfAnotherRelease", a_pod(), False),
    ],
)  # fmt: skip
def test_a_quota_counts_the_pods_of_its_scope(scope: str, pod: Json, is_counted: bool) -> None:
    assert counts_pod(a_quota(scope), pod) is is_counted
    assert counts_pod(a_quota(terms=(a_term("Exists", scope=scope),)), pod) is is_counted


@pytest.mark.parametrize(
    ("term", "of_high", "of_low", "of_no_class"),
    [
        (a_term("In", "high", "top"), True, False, False),
        (a_term("NotIn", "high"), False, True, True),
        (a_term("Exists"), True, True, False),
        (a_term("DoesNotExist"), False, False, True),
        (a_term("Near", "high"), False, False, False),
    ],
)
def test_a_scope_selects_priority_classes(term: Json, of_high: bool, of_low: bool, of_no_class: bool) -> None:
    quota = a_quota(terms=(term,))
    pods = [a_pod(priorityClassName="high"), a_pod(priorityClassName="low"), a_pod()]
    assert [counts_pod(quota, pod) for pod in pods] == [of_high, of_low, of_no_class]


def test_a_pod_meets_every_scope_and_every_pod_meets_none() -> None:
    both = a_quota("Terminating", terms=(a_term("In", "high"),))
    assert counts_pod(both, a_pod(activeDeadlineSeconds=1, priorityClassName="high"))
    assert not counts_pod(both, a_pod(priorityClassName="high"))
    assert not counts_pod(both, a_pod(activeDeadlineSeconds=1))
    assert counts_pod(a_quota(), a_pod())


def test_scopes_are_written_with_their_operators_and_values() -> None:
    quota = a_quota("BestEffort", terms=(a_term("In", "high", "top"), a_term("DoesNotExist"), a_term("Exists")))
    assert list_scopes(quota) == [
        "BestEffort", "PriorityClass In (high, top)", "PriorityClass DoesNotExist", "PriorityClass",
    ]  # fmt: skip
