"""Pods of schedulers and device plugins that do not run, each found only where the pod's own fate asks for it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.components import check_components
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.builders.events import a_summary

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
UNREACHED = 'Post "https://127.0.0.1:443/filter": dial tcp 127.0.0.1:443: connect: connection refused'


def a_container(reason: str, message: str = "") -> Json:
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}


def a_part(name: str, *containers: Json, node: str = "n1", **status: Any) -> Json:
    spec = {"nodeName": node} if node else {}
    listed = {"containerStatuses": list(containers)} if containers else {}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kube-system"}, "spec": spec,
        "status": {"phase": "Running", **listed, **status},
    }  # fmt: skip


def find_obstacle(
    *objects: Json, scheduler: str = "hami-scheduler", node: str = "", **attempt: Any
) -> FoundObstacle | None:
    """Find the part that does not run; ``attempt``: fields of an attempt, without which none was made."""
    pod = PodOnCluster(Evidence("pod", "lab/job-0"), scheduler=scheduler, node=node)
    summary = a_summary(**attempt) if attempt else None
    facts = DiagnosisFacts("default", "lab", "job-0", NOW, summary, pod=pod, objects=collect_objects(objects))
    obstacles = [obstacle for step in check_components(facts) for obstacle in step.obstacles]
    assert len(obstacles) <= 1
    return obstacles[0] if obstacles else None


def find_code(*objects: Json, **more: Any) -> str:
    obstacle = find_obstacle(*objects, **more)
    return obstacle.code if obstacle else ""


CRASHED = a_container("CrashLoopBackOff")


@pytest.mark.parametrize(
    ("part", "scheduler", "code"),
    [
        ("hami-scheduler-5d9f", "hami-scheduler", "SchedulerDown"),
        # Without a name the pod may be that of any scheduler.
        ("volcano-scheduler-0", "", "SchedulerDown"),
        ("volcano-scheduler-0", "hami-scheduler", ""),
        ("hami-device-plugin-x", "hami-scheduler", ""),
        ("old-hami-scheduler-0", "hami-scheduler", ""),
    ],
)
def test_an_untried_pod_waits_for_the_scheduler_that_it_names(part: str, scheduler: str, code: str) -> None:
    assert find_code(a_part(part, CRASHED), scheduler=scheduler) == code


def test_the_pod_itself_is_no_part_of_the_scheduler() -> None:
    pod = a_part("job-0", CRASHED)
    pod["metadata"]["name"] = "hami-scheduler-test"
    facts = DiagnosisFacts(
        "default", "lab", "hami-scheduler-test", NOW,
        pod=PodOnCluster(Evidence("pod", "p"), scheduler="hami-scheduler"), objects=collect_objects([pod]),
    )  # fmt: skip
    assert list(check_components(facts)) == []


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"containerStatuses": [CRASHED]}, "CrashLoopBackOff"),
        (
            {"containerStatuses": [a_container("ImagePullBackOff", "pull of\n x failed.")]},
            "ImagePullBackOff: pull of x failed",
        ),
        ({"initContainerStatuses": [a_container("ErrImagePull")], "containerStatuses": [CRASHED]}, "ErrImagePull"),
        # A container that runs, or that every pod has at its start.
        ({"containerStatuses": [{"name": "main", "state": {"running": {}}}]}, ""),
        ({"containerStatuses": [a_container("ContainerCreating")]}, ""),
        ({"containerStatuses": [a_container("PodInitializing")]}, ""),
        ({"containerStatuses": [a_container("ContainerCreating"), CRASHED]}, "CrashLoopBackOff"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Failed"}, ""),
        ({"phase": "Running", "reason": "NodeLost"}, ""),
    ],
)
def test_the_first_container_that_does_not_run_says_why(status: Json, why: str) -> None:
    obstacle = find_obstacle(a_part("hami-scheduler-0", **status))
    assert (obstacle.words if obstacle else {}) == ({"part": "kube-system/hami-scheduler-0", "why": why} if why else {})


def test_an_extender_that_does_not_answer_may_be_of_any_scheduler() -> None:
    obstacle = find_obstacle(a_part("volcano-scheduler-0", CRASHED), nodes=[], error=UNREACHED)
    assert obstacle
    assert (obstacle.code, obstacle.clauses) == ("SchedulerDown", ["extender"])
    assert [source.kind for source in obstacle.evidence] == ["pod", "attempt"]
    assert find_code(a_part("volcano-scheduler-0", CRASHED), nodes=[], error="the cache is broken") == ""


def a_daemon_set(name: str, desired: int | None, **selector: str) -> Json:
    return {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
        "spec": {"template": {"spec": {"nodeSelector": selector}}},
        "status": {} if desired is None else {"desiredNumberScheduled": desired},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        ({"Insufficient nvidia.com/gpu": 2}, "DevicePluginDown"),
        ({"Insufficient cpu": 1, "Insufficient amd.com/gpu": 1}, "DevicePluginDown"),
        ({"node unregistered": 2}, "DevicePluginDown"),
        # Nodes that have too little of something else have their devices.
        ({"Insufficient cpu": 2}, ""),
        ({"node(s) were unschedulable": 2}, ""),
        ({}, ""),
    ],
)
def test_a_device_plugin_is_looked_for_where_nodes_lack_what_it_offers(refused: dict[str, int], code: str) -> None:
    part = a_part("nvidia-device-plugin-x", CRASHED)
    assert find_code(part, scheduler="default-scheduler", refused_nodes=refused, nodes=[], offered_nodes=2) == code


LACKING: dict[str, Any] = {"refused_nodes": {"Insufficient nvidia.com/gpu": 2}, "nodes": [], "offered_nodes": 2}


@pytest.mark.parametrize(
    ("objects", "code", "clauses"),
    [
        ([a_part("hami-device-plugin-x", CRASHED)], "DevicePluginDown", ["node"]),
        ([a_part("hami-deviceplugin-x", CRASHED, node="")], "DevicePluginDown", []),
        ([a_part("nvidia-driver-daemonset-x", CRASHED)], "DevicePluginDown", ["node"]),
        ([a_part("nvidia-container-toolkit-daemonset-x", CRASHED)], "DevicePluginDown", ["node"]),
        ([a_part("hami-device-plugin-x")], "", []),
        ([a_part("web-0", CRASHED)], "", []),
        ([a_part("hami-scheduler-0", CRASHED)], "", []),
        ([a_daemon_set("hami-device-plugin", 0, gpu="on")], "DevicePluginWithoutNode", ["labels"]),
        ([a_daemon_set("hami-device-plugin", 0)], "DevicePluginWithoutNode", []),
        ([a_daemon_set("hami-device-plugin", 1, gpu="on")], "", []),
        ([a_daemon_set("hami-device-plugin", None, gpu="on")], "", []),
        ([a_daemon_set("web", 0, gpu="on")], "", []),
        # A pod that does not run says more than a set without nodes.
        (
            [a_daemon_set("dcgm-device-plugin", 0), a_part("hami-device-plugin-x", CRASHED)],
            "DevicePluginDown",
            ["node"],
        ),
    ],
)
def test_a_device_plugin_that_does_not_run_or_has_no_node_is_named(
    objects: list[Json], code: str, clauses: list[str]
) -> None:
    obstacle = find_obstacle(*objects, **LACKING)
    assert (obstacle.code if obstacle else "", list(obstacle.clauses) if obstacle else []) == (code, clauses)


def test_a_set_without_nodes_is_named_with_its_labels() -> None:
    obstacle = find_obstacle(a_daemon_set("hami-device-plugin", 0, gpu="on", pool="a"), **LACKING)
    assert obstacle
    assert obstacle.words == {"part": "default/hami-device-plugin", "labels": "gpu=on pool=a"}


def test_nothing_is_looked_for_about_a_pod_on_a_node_or_without_objects() -> None:
    assert find_code(a_part("hami-scheduler-0", CRASHED), node="n1") == ""
    assert list(check_components(DiagnosisFacts("default", "lab", "job-0", NOW))) == []
