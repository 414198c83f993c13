"""Pods by the fields and defaults of the API, and host ports, of which two pods cannot have the same on one node."""

from typing import Any

import pytest

from engine.snapshot.pods import ANY_ADDRESS, HostPortBinding, has_ended, read_pod


@pytest.mark.parametrize(
    ("other", "is_conflicting"),
    [
        (("10.0.0.1", "TCP", 80), True),
        ((ANY_ADDRESS, "TCP", 80), True),
        (("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "UDP", 80), False),
        (("10.0.0.1", "TCP", 81), False),
        ((ANY_ADDRESS, "UDP", 80), False),
    ],
)
def test_ports_conflict_by_protocol_number_and_address(other: tuple[str, str, int], is_conflicting: bool) -> None:
    port, second = HostPortBinding("10.0.0.1", "TCP", 80), HostPortBinding(*other)
    assert port.is_conflicting(second) is is_conflicting
    assert second.is_conflicting(port) is is_conflicting


@pytest.mark.parametrize(
    ("status", "is_ended"),
    [
        ({"phase": "Succeeded"}, True),
        ({"phase": "Failed"}, True),
        ({"phase": "Running"}, False),
        ({"phase": "Pending"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_pods_that_succeeded_or_failed_have_ended(status: dict[str, str] | None, is_ended: bool) -> None:
    assert has_ended({"status": status}) is is_ended


def test_a_pod_of_the_defaults_waits_for_the_default_scheduler() -> None:
    pod = read_pod({"metadata": {"name": "p"}})
    assert (pod.key, pod.scheduler, pod.priority) == (("default", "p"), "default-scheduler", 0)
    assert (pod.node, pod.nominated_node, pod.started_at) == ("", "", "")
    assert (pod.is_deleted, pod.is_preempted) == (False, False)
    assert (pod.host_ports, pod.volumes, pod.anti_affinity) == ((), (), ())


def test_a_pod_has_its_fields() -> None:
    metadata = {
        "namespace": "a",
        "name": "p",
        "uid": "u",
        "labels": {"x": "y"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    spec = {"nodeName": "n1", "schedulerName": "hami-scheduler", "priority": -5}
    waiting = read_pod({"metadata": metadata, "spec": spec, "status": {"nominatedNodeName": "n2"}})
    assert (waiting.key, waiting.uid, waiting.labels) == (("a", "p"), "u", {"x": "y"})
    assert (waiting.node, waiting.nominated_node) == ("n1", "n2")
    assert (waiting.scheduler, waiting.priority) == ("hami-scheduler", -5)
    assert waiting.started_at == "2026-01-01T00:00:00Z"
    running = read_pod({"metadata": metadata, "spec": spec, "status": {"startTime": "2026-01-01T00:01:00Z"}})
    assert running.started_at == "2026-01-01T00:01:00Z"


@pytest.mark.parametrize(
    ("condition", "is_preempted"),
    [
        ({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}, True),
        ({"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"}, False),
        ({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}, False),
        ({"type": "Ready", "status": "True", "reason": "PreemptionByScheduler"}, False),
    ],
)
def test_a_pod_that_is_deleted_names_its_preemption(condition: dict[str, str], is_preempted: bool) -> None:
    status = {"conditions": [{"type": "Initialized", "status": "True"}, condition]}
    deleted = read_pod({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": status})
    assert (deleted.is_deleted, deleted.is_preempted) == (True, is_preempted)
    assert not read_pod({"metadata": {"name": "p"}, "status": status}).is_preempted


def test_host_ports_of_sidecars_and_containers_are_taken() -> None:
    def a_container(**fields: Any) -> dict[str, Any]:
        return {"name": "c", "ports": [{"containerPort": 1, **fields}]}

    spec = {
        "initContainers": [{**a_container(hostPort=80), "restartPolicy": "Always"}, a_container(hostPort=81)],
        "containers": [
            a_container(hostPort=1, hostIP="10.0.0.1", protocol="UDP"), a_container(), a_container(hostPort=0), {}
        ],
    }  # fmt: skip
    assert read_pod({"metadata": {"name": "p"}, "spec": spec}).host_ports == (
        HostPortBinding(ANY_ADDRESS, "TCP", 80, is_of_sidecar=True),
        HostPortBinding("10.0.0.1", "UDP", 1, is_of_sidecar=False),
    )


def test_terms_of_anti_affinity_are_about_the_namespace_of_the_pod() -> None:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]}
    pod = read_pod({"metadata": {"name": "p", "namespace": "a"}, "spec": {"affinity": {"podAntiAffinity": rule}}})
    (term,) = pod.anti_affinity
    assert (term.topology_key, term.namespaces) == ("zone", frozenset({"a"}))
