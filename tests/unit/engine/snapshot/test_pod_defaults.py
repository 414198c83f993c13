"""Defaults of a new pod, as the Kubernetes API reference documents them."""

from typing import Any

import pytest

from engine.snapshot.pod_defaults import write_defaults


def complete(container: dict[str, Any], **spec: Any) -> Any:
    """Complete a pod of one container, and return that container."""
    return write_defaults({"spec": {"containers": [container], **spec}})["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        # "If Requests is omitted for a container, it defaults to Limits if that is explicitly specified."
        ({"limits": {"cpu": "2", "memory": "1Gi"}}, {"cpu": "2", "memory": "1Gi"}),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}}, {"cpu": "1", "memory": "1Gi"}),
        ({"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "1"}}, {"cpu": "1", "memory": "2Gi"}),
        ({"limits": {"cpu": "2"}, "requests": None}, {"cpu": "2"}),
        ({"requests": {"cpu": "1"}}, {"cpu": "1"}),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_an_amount_that_only_limits_name_is_requested(
    field: str, resources: dict[str, Any], requests: dict[str, str]
) -> None:
    spec = write_defaults({"spec": {field: [{"name": "c", "resources": resources}]}})["spec"]
    assert spec == {field: [{"name": "c", "resources": {**resources, "requests": requests}}]}


# "If HostNetwork is specified, this must match ContainerPort": the API server writes it where it is absent.
@pytest.mark.parametrize(
    ("port", "completed"),
    [
        ({"containerPort": 80}, {"containerPort": 80, "hostPort": 80}),
        ({"containerPort": 80, "hostPort": 0}, {"containerPort": 80, "hostPort": 80}),
        ({"containerPort": 80, "hostPort": 81}, {"containerPort": 80, "hostPort": 81}),
        ({}, {"hostPort": 0}),
    ],
)
def test_a_port_on_the_network_of_the_host_is_a_port_of_the_host(
    port: dict[str, int], completed: dict[str, int]
) -> None:
    assert complete({"name": "c", "ports": [port]}, hostNetwork=True)["ports"] == [completed]
    for own_network in ({}, {"hostNetwork": False}):
        assert complete({"name": "c", "ports": [port]}, **own_network)["ports"] == [port]


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"spec": None},
        {"spec": {"containers": None}},
        {"spec": {"containers": ["x", {"resources": {"limits": []}}, {"resources": 3, "ports": "y"}]}},
        {"spec": {"hostNetwork": True, "containers": [{"name": "c", "ports": None}, {"ports": [7]}]}},
    ],
)
def test_what_has_no_defaults_remains(pod: dict[str, Any]) -> None:
    assert write_defaults(pod) == pod
