"""The list of nodes, of the examples' cluster and of the API."""

import json

import pytest

from tests.unit.cli.terminal.conftest import Run

CLUSTER = ("--cluster", "examples/cluster.yaml")


def test_nodes_of_a_file_have_models_sums_and_devices_that_no_pod_gets(run: Run) -> None:
    done = run("nodes", *CLUSTER)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("10 nodes: 17 of 72 devices are free;")
    assert "node7 can serve nobody: RegistrationMissing." in done.stdout
    excluded = done.stdout.partition("Devices that no pod gets")[2]
    assert excluded.count("unhealthy") == 2
    assert excluded.count("cordoned") == 1


def test_devices_held_are_added_up_by_namespace(run: Run) -> None:
    answer = json.loads(run("nodes", "--by", "namespace", *CLUSTER, "-o", "json").stdout)
    # Counted by hand from the pods' annotations in the file.
    held = {entry["namespace"]: entry["devices"] for entry in answer["items"]}
    assert held == {"llm": 20, "vision": 18, "batch": 12, "default": 8}
    assert run("nodes", "--by", "namespace", *CLUSTER).stdout.splitlines()[1].split()[:2] == ["llm", "20"]


def test_sums_of_a_model_are_those_of_its_nodes(run: Run) -> None:
    nodes = json.loads(run("nodes", *CLUSTER, "-o", "json").stdout)["items"]
    models = json.loads(run("nodes", "--by", "model", *CLUSTER, "-o", "json").stdout)["items"]
    free = {model["model"]: model["free_devices"] for model in models}
    # node7 registers no device.
    assert free == {"NVIDIA A40": 17, "NVIDIA H100 80GB HBM3": 0, "NVIDIA-Tesla T4": 0, None: 0}
    assert sum(model["nodes"] for model in models) == len(nodes) == 10
    assert sum(free.values()) == sum(node["free_devices"] for node in nodes)


def test_only_nodes_of_one_pool_are_listed_and_added_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULERLOG_NODE_POOLS", "first=node[123],rest=node*")
    listed = json.loads(run("nodes", "--pool", "first", *CLUSTER, "-o", "json").stdout)
    assert [item["node"] for item in listed["items"]] == ["node1", "node2", "node3"]
    assert listed["total"] == 3
    models = json.loads(run("nodes", "--pool", "first", "--by", "model", *CLUSTER, "-o", "json").stdout)["items"]
    assert [(model["model"], model["nodes"], model["devices"]) for model in models] == [("NVIDIA A40", 3, 24)]


def test_a_pool_that_there_is_not_is_a_mistake_that_names_the_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set SCHEDULERLOG_NODE_POOLS" in run("nodes", "--pool", "a100", *CLUSTER).stderr
    monkeypatch.setenv("SCHEDULERLOG_NODE_POOLS", "first=node[123],rest=node*")
    refused = run("nodes", "--pool", "frist", *CLUSTER)
    assert refused.exit_code == 2
    assert "Pools: first, rest." in refused.stderr


def test_a_file_that_is_none_is_a_mistake(run: Run) -> None:
    assert run("nodes", "--cluster", "README.md").exit_code == 2
