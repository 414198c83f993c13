"""Requests of pods, added up as kube-scheduler 1.36 does it."""

from typing import Any

from engine.snapshot.requests import request_on_node, request_to_place, sum_limits, sum_requests


def a_container(name: str, cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **fields}


def get_cpu(spec: dict[str, Any], status: dict[str, Any] | None = None) -> int:
    return request_on_node({"spec": spec, "status": status or {}})["cpu"]


def test_containers_add_up() -> None:
    assert get_cpu({"containers": [a_container("a", "1"), a_container("b", "500m")]}) == 1500


def test_the_largest_init_container_counts_where_it_exceeds_the_containers() -> None:
    init = [a_container("i", "3"), a_container("j", "2")]
    assert get_cpu({"initContainers": init, "containers": [a_container("a", "1")]}) == 3000
    assert get_cpu({"initContainers": init, "containers": [a_container("a", "4")]}) == 4000


def test_a_sidecar_runs_next_to_the_containers_and_the_init_containers_after_it() -> None:
    sidecar = a_container("s", "1", restartPolicy="Always")
    containers = [a_container("a", "1")]
    assert get_cpu({"initContainers": [sidecar], "containers": containers}) == 2000
    assert get_cpu({"initContainers": [sidecar, a_container("i", "3")], "containers": containers}) == 4000
    assert get_cpu({"initContainers": [a_container("i", "3"), sidecar], "containers": containers}) == 3000


def test_requests_of_the_pod_replace_those_of_its_containers_before_overhead_is_added() -> None:
    spec = {
        "containers": [a_container("a", "1")],
        "resources": {"requests": {"cpu": "700m"}},
        "overhead": {"cpu": "50m"},
    }
    assert get_cpu(spec) == 750


def test_an_extended_resource_at_the_level_of_the_pod_is_passed_over() -> None:
    spec = {
        "containers": [{"name": "a", "resources": {"requests": {"nvidia.com/gpu": "2"}}}],
        "resources": {"requests": {"nvidia.com/gpu": "7", "memory": "1Gi"}},
    }
    assert request_to_place({"spec": spec}) == {"nvidia.com/gpu": 2, "memory": 2**30}


def a_status(granted: str, actual: str, **fields: Any) -> dict[str, Any]:
    container = {"name": "a", "allocatedResources": {"cpu": granted}, "resources": {"requests": {"cpu": actual}}}
    return {"containerStatuses": [container], **fields}


def test_during_a_resize_the_largest_of_wanted_granted_and_actual_counts() -> None:
    for granted, actual, wanted, cpu in (("1", "1", "2", 2000), ("3", "1", "2", 3000), ("1", "4", "2", 4000)):
        assert get_cpu({"containers": [a_container("a", wanted)]}, a_status(granted, actual)) == cpu


def test_an_infeasible_resize_does_not_count_what_the_spec_wants() -> None:
    infeasible = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    spec = {"containers": [a_container("a", "8")]}
    assert get_cpu(spec, a_status("1", "2", conditions=infeasible)) == 2000
    deferred = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    assert get_cpu(spec, a_status("1", "2", conditions=deferred)) == 8000


def test_a_container_without_actual_resources_counts_as_its_spec() -> None:
    status = {"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "5"}}]}
    assert get_cpu({"containers": [a_container("a", "1")]}, status) == 1000


def test_a_pod_that_is_to_be_placed_counts_as_its_spec() -> None:
    pod = {"spec": {"containers": [a_container("a", "1")]}, "status": a_status("3", "3")}
    assert request_to_place(pod) == {"cpu": 1000}


def test_a_resize_at_the_level_of_the_pod_counts_like_one_of_a_container() -> None:
    spec = {"containers": [], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "1"}}
    status: dict[str, Any] = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "3"}}
    assert get_cpu(spec, status) == 6000
    infeasible = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert get_cpu(spec, {"resources": {"requests": {"cpu": "1"}}, "conditions": infeasible}) == 2000


def test_requests_are_summed_with_or_without_the_overhead() -> None:
    pod = {"spec": {"containers": [a_container("a", "1")], "overhead": {"cpu": "250m", "memory": "1"}}}
    assert sum_requests(pod) == {"cpu": 1_250_000_000, "memory": 10**9}
    assert sum_requests(pod, has_overhead=False) == {"cpu": 10**9}


def test_limits_are_summed_as_requests_and_the_overhead_raises_those_that_are_set() -> None:
    def limit(name: str, cpu: str, **fields: Any) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": "9"}, "limits": {"cpu": cpu}}, **fields}

    spec: dict[str, Any] = {
        "initContainers": [limit("s", "1", restartPolicy="Always"), limit("i", "3")],
        "containers": [limit("a", "2"), a_container("b", "7")],
        "overhead": {"cpu": "500m", "memory": "1Gi"},
    }
    assert sum_limits({"spec": spec}) == {"cpu": 4_500_000_000}
    assert sum_limits({"spec": spec}, has_overhead=False) == {"cpu": 4_000_000_000}
    at_pod = {**spec, "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "6"}}}
    assert sum_limits({"spec": at_pod}, has_overhead=False) == {"cpu": 6_000_000_000}


def test_huge_pages_count_at_the_level_of_the_pod() -> None:
    spec = {"containers": [], "resources": {"requests": {"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}}}
    assert request_to_place({"spec": spec}) == {"hugepages-2Mi": 2**22}


def test_an_init_container_is_not_resized_and_a_sidecar_is() -> None:
    status = {
        "initContainerStatuses": [
            {"name": name, "allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "5"}}} for name in "is"
        ]
    }
    assert get_cpu({"containers": [], "initContainers": [a_container("i", "1")]}, status) == 1000
    sidecar = a_container("s", "1", restartPolicy="Always")
    assert get_cpu({"containers": [], "initContainers": [sidecar]}, status) == 5000


def test_only_a_pending_resize_is_infeasible() -> None:
    conditions = [{"type": "PodResizeInProgress", "reason": "Infeasible"}]
    status = a_status("1", "2", conditions=conditions)
    assert get_cpu({"containers": [a_container("a", "8")]}, status) == 8000


def test_a_request_of_nothing_is_listed() -> None:
    assert request_to_place({"spec": {"containers": [a_container("a", "0")]}}) == {"cpu": 0}
    assert request_to_place({}) == {}
