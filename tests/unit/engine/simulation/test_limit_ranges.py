"""LimitRanges: the amounts that they give a pod, and the bounds that it breaks.

The rules are those of Kubernetes' documentation: "Limit Ranges" and the API reference of LimitRangeItem ("Default is
resource requirement limit value by resource name if resource limit is omitted", and so on).
"""

from typing import Any

import pytest

from engine.simulation.limit_ranges import BrokenBound, find_broken_bound, select_limit_ranges, write_amounts
from schemas.json_types import Json
from tests.support.builders.layer_objects import to_english

MILLI = 10**6


def a_range(kind: str = "Container", name: str = "bounds", namespace: str = "lab", **fields: Any) -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"kind": "LimitRange", "metadata": metadata, "spec": {"limits": [{"type": kind, **fields}]}}


def a_container(name: str = "main", **amounts: Any) -> Json:
    return {"name": name, "resources": amounts}


def a_pod(*containers: Json, **spec: Any) -> Json:
    return {"metadata": {"name": "p", "namespace": "lab"}, "spec": {"containers": list(containers), **spec}}


def get_amounts(pod: Json, field: str = "containers") -> list[Json]:
    return [container["resources"] for container in pod["spec"][field]]


def test_limit_ranges_are_those_of_the_namespace_by_name() -> None:
    ranges = [a_range(name="b"), a_range(name="a"), a_range(namespace="other"), a_range(name="c", namespace="")]
    assert [item["metadata"]["name"] for item in select_limit_ranges(ranges, "lab")] == ["a", "b"]
    assert [item["metadata"]["name"] for item in select_limit_ranges(ranges, "default")] == ["c"]


@pytest.mark.parametrize(
    ("fields", "amounts"),
    [
        ({"default": {"cpu": "2"}}, {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}),
        (
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
        ),
        ({"defaultRequest": {"cpu": "1"}}, {"limits": {}, "requests": {"cpu": "1"}}),
        # The API server derives what a LimitRange leaves out from its bounds.
        ({"max": {"cpu": "4"}}, {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}}),
        ({"max": {"cpu": "4"}, "default": {"cpu": "2"}}, {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}),
        ({"min": {"cpu": "1"}}, {"limits": {}, "requests": {"cpu": "1"}}),
        ({"min": {"cpu": "1"}, "max": {"cpu": "4"}}, {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}}),
    ],
)
def test_a_container_without_amounts_gets_those_of_the_limit_range(fields: Json, amounts: Json) -> None:
    pod = a_pod(a_container(), initContainers=[a_container("init")])
    written = write_amounts(pod, a_range(**fields))
    assert get_amounts(written) == get_amounts(written, "initContainers") == [amounts]
    assert pod == a_pod(a_container(), initContainers=[a_container("init")])
    # Defaults are of containers only.
    assert write_amounts(pod, a_range("Pod", **fields)) is pod


def test_amounts_of_the_container_come_before_those_of_the_limit_range() -> None:
    defaults = a_range(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})
    pod = a_pod(a_container(limits={"cpu": "8"}, requests={"memory": "2Gi"}))
    assert get_amounts(write_amounts(pod, defaults)) == [
        {"limits": {"cpu": "8", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "2Gi"}}
    ]
    assert "initContainers" not in write_amounts(pod, defaults)["spec"]


def find(pod: Json, *ranges: Json) -> tuple[Any, ...] | None:
    broken = find_broken_bound(pod, ranges)
    return broken and (broken.field, broken.resource, broken.container, broken.observed, broken.amount)


def a_pod_with(request: str = "", limit: str = "", resource: str = "cpu") -> Json:
    requests, limits = ({resource: amount} if amount else {} for amount in (request, limit))
    return a_pod(a_container(requests=requests, limits=limits))


@pytest.mark.parametrize(
    ("bounds", "request_", "limit", "observed", "amount"),
    [
        # At least 1 CPU: of the request, and of the limit where there is one.
        ({"min": {"cpu": "1"}}, "1", "", None, 0),
        ({"min": {"cpu": "1"}}, "1", "1", None, 0),
        ({"min": {"cpu": "1"}}, "999m", "", "request", 999 * MILLI),
        ({"min": {"cpu": "1"}}, "1", "500m", "limit", 500 * MILLI),
        ({"min": {"cpu": "1"}}, "", "2", "no_request", 0),
        # At most 4 CPUs: of the limit, which there has to be, and of the request.
        ({"max": {"cpu": "4"}}, "1", "4", None, 0),
        ({"max": {"cpu": "4"}}, "", "4", None, 0),
        ({"max": {"cpu": "4"}}, "1", "4001m", "limit", 4001 * MILLI),
        ({"max": {"cpu": "4"}}, "4", "4", None, 0),
        ({"max": {"cpu": "4"}}, "5", "4", "request", 5000 * MILLI),
        ({"max": {"cpu": "4"}}, "1", "", "no_limit", 0),
        # The limit is at most twice the request.
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "1", "2", None, 0),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "1", "2500m", "ratio", 2500 * MILLI),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "", "2", "no_request", 0),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "0", "2", "no_request", 0),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "1", "", "no_limit", 0),
        ({"maxLimitRequestRatio": {"cpu": "1"}}, "2", "1", None, 0),
    ],
)
def test_a_container_keeps_the_bounds_or_the_amount_that_breaks_one_is_named(
    bounds: Json, request_: str, limit: str, observed: str | None, amount: int
) -> None:
    pod, (field,) = a_pod_with(request_, limit), bounds
    expected = (field, "cpu", "main", observed, amount) if observed else None
    assert find(pod, a_range(**bounds)) == expected
    init = a_pod(a_container("good", requests={"cpu": "1"}, limits={"cpu": "1"}),
                 initContainers=[{**pod["spec"]["containers"][0], "name": "main"}])  # fmt: skip
    assert find(init, a_range(**bounds)) == expected


def test_bounds_of_a_pod_are_about_the_sum_of_its_containers() -> None:
    two = a_pod(*(a_container(name, requests={"cpu": "1"}, limits={"cpu": "2"}) for name in "ab"))
    assert find(two, a_range("Pod", max={"cpu": "4"})) is None
    assert find(two, a_range("Pod", max={"cpu": "3"})) == ("max", "cpu", "", "limit", 4000 * MILLI)
    assert find(two, a_range("Pod", min={"cpu": "3"})) == ("min", "cpu", "", "request", 2000 * MILLI)
    assert find(two, a_range(max={"cpu": "3"})) is None
    # What a RuntimeClass adds does not count.
    assert find({**two, "spec": {**two["spec"], "overhead": {"cpu": "9"}}}, a_range("Pod", max={"cpu": "4"})) is None
    assert find(two, a_range("PersistentVolumeClaim", max={"cpu": "1"})) is None


def test_the_first_broken_bound_of_all_limit_ranges_is_found() -> None:
    pod = a_pod_with("1", "2")
    loose, tight = a_range(name="a", max={"cpu": "4"}), a_range(name="b", max={"cpu": "1"})
    broken = find_broken_bound(pod, [loose, tight])
    assert broken is not None
    assert (broken.limit_range["metadata"]["name"], broken.bound) == ("b", 1000 * MILLI)


def describe(pod: Json, **bounds: Any) -> str:
    broken = find_broken_bound(pod, [a_range(bounds.pop("kind", "Container"), **bounds)])
    assert isinstance(broken, BrokenBound)
    obstacle = broken.describe()
    assert obstacle.code == "LimitRangeRefusesPod"
    assert (obstacle.words["range"], obstacle.words["namespace"]) == ("bounds", "lab")
    return f"{to_english(obstacle.words['allowed'])} | {to_english(obstacle.words['observed'])}"


def test_a_broken_bound_is_described_in_units_of_its_resource_and_a_ratio_as_a_number() -> None:
    largest = describe(a_pod_with("1Gi", "4Gi", "memory"), max={"memory": "2Gi"})
    assert "2Gi" in largest
    assert "4Gi" in largest
    assert "main" in largest
    ratio = describe(a_pod_with("400m", "1"), maxLimitRequestRatio={"cpu": "2"})
    allowed, _, observed = ratio.partition(" | ")
    assert " 2 " in f" {allowed} "
    assert "2.5" in observed
    of_pod = describe(a_pod_with("1", "2"), kind="Pod", max={"cpu": "1500m"})
    assert "1.5" in of_pod
    assert "main" not in of_pod
