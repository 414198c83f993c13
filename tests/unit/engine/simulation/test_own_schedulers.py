"""Nodes that our scheduler leaves to another one are left to it in a simulation too, and only by ours.

The rule is that of docs/decisions/0053; the scheduler's container is the one that deploy/ installs.
"""

from pathlib import Path

import pytest
import yaml

from engine.simulation.own_schedulers import OwnScheduler, list_own_schedulers, list_setting_maps
from tests.support.builders.simulations import Object, a_gpu_node, a_gpu_pod, list_notes, simulate

MANIFEST = Path("deploy/kustomize/components/scheduler/scheduler.yaml")
OURS, HAMI = "schedulerlog", "hami-scheduler"


def a_scheduler(*flags: str) -> Object:
    """Build the pod of our scheduler as deploy/ installs it, with more flags."""
    (workload,) = [item for item in yaml.safe_load_all(MANIFEST.read_text()) if item["kind"] == "StatefulSet"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": workload["spec"]["template"]["spec"]}
    pod["spec"]["containers"][0]["args"] += flags
    return pod | {"metadata": {"namespace": OURS, "name": "schedulerlog-scheduler-0", "uid": "ours"}}


def a_placed_pod(name: str, scheduler: str, node: str, gpus: int = 1) -> Object:
    pod = a_gpu_pod(name, gpu=gpus, gpumem=3000, gpucores=10)
    annotations = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": f"GPU-{node}-0,NVIDIA,3000,10:;"}
    pod["metadata"] |= {"uid": name, "annotations": annotations}
    pod["spec"] |= {"schedulerName": scheduler, "nodeName": node}
    return pod


def a_pod_of(scheduler: str) -> Object:
    pod = a_gpu_pod("new", gpu=1, gpumem=1000)
    pod["spec"]["schedulerName"] = scheduler
    return pod


LABELS = {"schedulerlog.io/scheduler": "schedulerlog"}
"""Labels of the nodes of ours, by the flag of the manifest."""
NODES = a_gpu_node("theirs", labels=LABELS), a_gpu_node("ours", labels=LABELS)
HELD = a_placed_pod("held", HAMI, "theirs")


def test_a_pod_of_our_scheduler_gets_no_node_where_pods_of_hami_hold_devices() -> None:
    assert simulate(a_pod_of(OURS), *NODES, HELD, a_scheduler())["node"] == "ours"
    refused = simulate(a_pod_of(OURS), NODES[0], HELD, a_scheduler())
    obstacle = refused["diagnosis"]["obstacle"]
    assert (obstacle["code"], obstacle["nodes"]) == ("NodeOfAnotherScheduler", ["theirs"])
    assert obstacle["sentence"]["en"].startswith(f"{OURS} decides about no device of the only node")
    assert f"pods of {HAMI} hold devices there" in obstacle["sentence"]["en"]


@pytest.mark.parametrize(
    ("scheduler", "others"),
    [(HAMI, [a_scheduler()]), (OURS, [a_scheduler(f"--share-nodes-with={HAMI}")]), (OURS, [])],
    ids=["HAMi decides", "shared by a setting", "our scheduler is not seen"],
)
def test_no_node_is_left_to_another_scheduler(scheduler: str, others: list[Object]) -> None:
    answer = simulate(a_pod_of(scheduler), *NODES, HELD, *others)
    assert answer["node"] == "theirs"


def test_no_change_of_the_pod_is_suggested_where_only_nodes_of_another_scheduler_have_devices() -> None:
    refused = simulate(a_pod_of(OURS), NODES[0], HELD, a_scheduler())
    assert refused["suggestions"] is None or not refused["suggestions"]["items"]


def test_a_pod_that_asks_for_less_than_its_annotations_name_withholds_no_node() -> None:
    """docs/decisions/0053: else everybody who writes annotations could take nodes out of service."""
    asks_nothing = a_placed_pod("held", HAMI, "theirs", gpus=0)
    assert simulate(a_pod_of(OURS), NODES[0], asks_nothing, a_scheduler())["node"] == "theirs"


def test_the_last_pod_that_has_ended_leaves_the_node_to_ours() -> None:
    ended = HELD | {"status": {"phase": "Succeeded"}}
    assert simulate(a_pod_of(OURS), NODES[0], ended, a_scheduler())["node"] == "theirs"


def test_the_name_and_the_shares_are_read_from_variables_too() -> None:
    scheduler = a_scheduler()
    container = scheduler["spec"]["containers"][0]
    container["args"] = ["scheduler", "serve", "--share-nodes-with", "a, b"]
    assert list_own_schedulers([scheduler]) == {HAMI: OwnScheduler(frozenset({HAMI, "a", "b"}), "")}
    container["args"] = ["scheduler", "serve"]
    container["env"] = [
        {"name": "SCHEDULERLOG_SCHEDULER_NAME", "value": OURS},
        {"name": "SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH", "value": "a"},
    ]
    assert list_own_schedulers([scheduler]) == {OURS: OwnScheduler(frozenset({OURS, "a"}), "")}


def a_config_map(name: str, namespace: str = OURS, **data: str) -> Object:
    return {"kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": data}


def test_settings_are_read_from_config_maps_in_the_order_of_kubernetes() -> None:
    """https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables"""
    scheduler = a_scheduler()
    container = scheduler["spec"]["containers"][0]
    container["args"] = ["scheduler", "serve"]
    sources = [{"configMapRef": {"name": "all"}}, {"configMapRef": {"name": "short"}, "prefix": "SCHEDULERLOG_"}]
    key = {"configMapKeyRef": {"name": "keys", "key": "shares"}}
    container["envFrom"] = sources
    container["env"] = [{"name": "SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH", "valueFrom": key}]
    maps = [
        a_config_map("all", SCHEDULERLOG_SCHEDULER_NAME="first", SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH="lost"),
        a_config_map("short", SCHEDULER_NAME=OURS, SCHEDULER_NODE_LABEL_SELECTOR="a=b"),
        a_config_map("keys", shares=HAMI), a_config_map("short", "elsewhere", SCHEDULER_NAME="of-another-namespace"),
    ]  # fmt: skip
    assert list_own_schedulers([scheduler], maps) == {OURS: OwnScheduler(frozenset({OURS, HAMI}), "a=b")}
    assert list_setting_maps([scheduler]) == [(OURS, "all"), (OURS, "short"), (OURS, "keys")]


def test_a_simulation_on_a_file_reads_its_config_maps() -> None:
    scheduler = a_scheduler()
    scheduler["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "ours"}}]
    shares = a_config_map("ours", SCHEDULERLOG_SCHEDULER_SHARE_NODES_WITH=HAMI)
    assert simulate(a_pod_of(OURS), NODES[0], HELD, scheduler)["node"] is None
    assert simulate(a_pod_of(OURS), NODES[0], HELD, scheduler, shares)["node"] == "theirs"


def test_a_node_without_devices_is_unregistered_and_not_that_of_another_scheduler() -> None:
    plain = a_gpu_node("theirs", labels=LABELS)
    del plain["metadata"]["annotations"]
    refused = simulate(a_pod_of(OURS), plain, HELD, a_scheduler())
    assert refused["schedulerlog"]["filter"]["nodes"][0]["containers"][0]["reason"] == "node unregistered"


def test_our_scheduler_gets_no_node_without_its_labels_and_hami_does() -> None:
    unlabelled, labelled = a_gpu_node("unlabelled"), a_gpu_node("labelled", labels=LABELS)
    answer = simulate(a_pod_of(OURS), unlabelled, labelled, a_scheduler())
    assert answer["node"] == "labelled"
    words = (
        "schedulerlog looks only at nodes with the labels schedulerlog.io/scheduler=schedulerlog, which 1 node lacks"
    )
    assert list_notes(answer)["NodesNotSelected"] == f"{words}: unlabelled."
    refused = simulate(a_pod_of(OURS), unlabelled, a_scheduler())
    assert refused["schedulerlog"]["filter"]["nodes"][0]["containers"][0]["reason"] == "node unregistered"
    assert not refused["suggestions"]["items"]
    assert simulate(a_pod_of(HAMI), unlabelled, a_scheduler())["node"] == "unlabelled"


@pytest.mark.parametrize(
    ("selector", "labels", "is_rejected"),
    [
        ("", {}, False), ("a=b", {"a": "b"}, False), ("a=b, c!=d", {"a": "b", "c": "e"}, False),
        ("a=b", {}, True), ("a==b", {"a": "c"}, True), ("c!=d", {"c": "d"}, True), ("a in (b, c)", {}, False),
    ],
)  # fmt: skip
def test_a_selector_rejects_what_certainly_lacks_its_labels(
    selector: str, labels: dict[str, str], is_rejected: bool
) -> None:
    """https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors"""
    node = {"metadata": {"name": "n", "labels": labels}}
    assert OwnScheduler(frozenset(), selector).rejects(node) is is_rejected
