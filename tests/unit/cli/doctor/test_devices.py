"""Resources of the vendors that nodes have, and nodes that two schedulers use."""

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.doctor.devices import check_shared_nodes, list_vendors_of_nodes, read_selector, read_vendors
from cli.doctor.schedulers import check_configuration, list_selectors
from engine.fit.device_config import read_shipped
from schemas.json_types import Json
from tests.support.builders.vendor_examples import MIXED, NAMES, read_node

SHIPPED = yaml.safe_load(
    (Path(__file__).parents[4] / "deploy/kustomize/components/scheduler/kube-scheduler.yaml").read_text()
)
# Resources of vendors without a switch or a list of their own in the chart of HAMi v2.10 (templates/_helpers.tpl).
OF_THE_CHART = (
    *("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage"),
    *("nvidia.com/priority", "cambricon.com/vmlu", "hygon.com/dcunum", "hygon.com/dcumem", "hygon.com/dcucores"),
    *("metax-tech.com/gpu", "metax-tech.com/sgpu", "metax-tech.com/vcore", "metax-tech.com/vmemory"),
)


def a_configuration(*names: str) -> Json:
    """Build kube-scheduler's configuration with an extender that manages these resources."""
    resources = [{"name": name, "ignoredByScheduler": True} for name in names]
    configuration: Json = SHIPPED | {"extenders": [SHIPPED["extenders"][0] | {"managedResources": resources}]}
    return configuration


def list_problems(configuration: Json, *nodes: Json, config_maps: tuple[Json, ...] = ()) -> list[str]:
    vendors = list_vendors_of_nodes(nodes, read_vendors(config_maps))
    return [fault.problem for fault in check_configuration("x", configuration, vendors)]


def test_a_vendor_that_hamis_chart_does_not_manage_is_named_with_its_nodes() -> None:
    node = read_node("ascend")
    (chip,) = {
        key.removeprefix("hami.io/node-register-") for key in node["metadata"]["annotations"] if "register" in key
    }
    (problem,) = list_problems(a_configuration(*OF_THE_CHART), node)
    resources = f"huawei.com/{chip}, huawei.com/{chip}-memory, huawei.com/{chip}-core"
    assert problem == f"managedResources lacks {resources} ({chip} on {node['metadata']['name']})"


@pytest.mark.parametrize("name", NAMES)
def test_the_configuration_that_deploy_ships_manages_every_vendor(name: str) -> None:
    assert list_problems(SHIPPED, read_node(name)) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name != MIXED])
def test_every_vendor_is_known_by_its_node(name: str) -> None:
    """NVIDIA's names alone are not enough for a node of another vendor."""
    nvidia = [name for name in OF_THE_CHART if name.startswith("nvidia.com/")]
    problems = list_problems(a_configuration(*nvidia), read_node(name))
    assert problems, name
    assert all(read_node(name)["metadata"]["name"] in problem for problem in problems)


def test_a_resource_that_the_nodes_have_may_be_left_to_kube_scheduler_and_the_count_may_not() -> None:
    """HAMi's chart does not list Cambricon's memory and cores, which Cambricon's plugin gives to the nodes."""
    node = read_node("cambricon")
    amounts = {
        "cambricon.com/mlu.smlu.vmemory": "100",
        "cambricon.com/mlu.smlu.vcore": "100",
        "cambricon.com/vmlu": "10",
    }
    node.setdefault("status", {}).setdefault("allocatable", {}).update(amounts)
    assert list_problems(a_configuration(*OF_THE_CHART), node) == []
    without = [name for name in OF_THE_CHART if name != "cambricon.com/vmlu"]
    (problem,) = list_problems(a_configuration(*without), node)
    assert problem.startswith("managedResources lacks cambricon.com/vmlu (")


def test_names_of_resources_are_those_of_the_device_configuration_in_the_cluster() -> None:
    nvidia = {"resourceCountName": "example.com/vgpu", "resourceMemoryName": "example.com/vgpu-memory"}
    config_map = {"data": {"device-config.yaml": yaml.safe_dump({"nvidia": nvidia})}}
    unreadable = {"data": {"device-config.yaml": "nvidia: ["}}
    (vendor,) = read_vendors([unreadable, config_map])
    assert vendor.resources.count == "example.com/vgpu"
    names = [name for name in astuple(vendor.resources) if name]
    assert list_problems(a_configuration(*names), config_maps=(config_map,)) == []
    (problem,) = list_problems(a_configuration(*names[1:]), config_maps=(config_map,))
    assert problem == "managedResources lacks example.com/vgpu"


def test_an_extender_of_something_else_is_left_alone() -> None:
    volumes: dict[str, Any] = {
        "urlPrefix": "http://127.0.0.1:9251", "filterVerb": "predicate",
        "managedResources": [{"name": "topolvm.io/capacity"}],
    }  # fmt: skip
    assert list_problems(SHIPPED | {"extenders": [volumes]}) == []


def a_workload(name: str, container: str, image: str, *words: str, **fields: Any) -> Json:
    spec = {"containers": [{"name": container, "image": image, "args": ["serve", *words], **fields}]}
    return {"metadata": {"name": name, "namespace": "gpu"}, "spec": {"template": {"spec": spec}}}


def a_labelled_node(name: str, **labels: str) -> Json:
    node = read_node("ascend", name)
    node["metadata"]["labels"] = labels
    return node


SELECTED = a_labelled_node("a", scheduler="schedulerlog")
OTHER = a_labelled_node("b", scheduler="hami")


@pytest.mark.parametrize(
    ("ours", "hami", "shared"),
    [
        ("scheduler=schedulerlog", "scheduler=hami", ""),
        ("scheduler=schedulerlog", "scheduler!=schedulerlog", ""),
        ("scheduler=schedulerlog", "", "a"),
        ("", "", "a, b"),
        ("", "scheduler=hami", "b"),
        ("scheduler==schedulerlog,missing=1", "", ""),
        # Which nodes these are is not certain.
        ("scheduler in (schedulerlog)", "", ""),
    ],
)
def test_a_node_that_both_schedulers_use_is_a_finding(ours: str, hami: str, shared: str) -> None:
    nodes = [SELECTED, OTHER, {"metadata": {"name": "without-devices", "labels": {"scheduler": "schedulerlog"}}}]
    faults = list(check_shared_nodes(nodes, read_shipped(), {"gpu/ours": ours}, {"gpu/hami": hami}))
    words = [f"gpu/hami decides on its nodes too ({shared}): a device could be given away twice"] if shared else []
    assert [fault.problem for fault in faults] == words
    assert all(("--node-label-selector" in fault.remedy) == (not ours) for fault in faults)


def test_the_labels_of_a_schedulers_nodes_are_read_wherever_they_are_set() -> None:
    image, variable = "example.com/schedulerlog:0.1.0", "SCHEDULERLOG_SCHEDULER_NODE_LABEL_SELECTOR"
    settings = {"ours": {variable: "a=map"}}
    workloads = {
        "a=joined": a_workload("x", "scheduler", image, "--node-label-selector=a=joined"),
        "a=apart": a_workload("x", "scheduler", image, "--node-label-selector", "a=apart"),
        "a=variable": a_workload("x", "scheduler", image, env=[{"name": variable, "value": "a=variable"}]),
        "a=map": a_workload("x", "scheduler", image, envFrom=[{"configMapRef": {"name": "ours"}}]),
        "": a_workload("x", "scheduler", image),
    }
    for selector, workload in workloads.items():
        assert read_selector(workload, "scheduler", settings) == selector
    hami = a_workload("hami", "scheduler", "projecthami/hami:v2.10.0")
    both = [workloads["a=joined"], hami]
    assert list_selectors(both, "scheduler", {}, is_ours=True) == {"gpu/x": "a=joined"}
    assert list_selectors(both, "scheduler", {}, is_ours=False) == {"gpu/hami": ""}
