"""HAMi's metrics against what the annotations of examples/cluster.yaml add up to, read here without the scheduler."""

import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from engine.fit.devices.cluster_state import ClusterColumns
from scheduler.hami_compat.metrics import HamiMetrics

CLUSTER = [item for item in yaml.safe_load_all(Path("examples/cluster.yaml").read_text("utf-8")) if item]
MIB = 1024 * 1024


def scrape(objects: list[dict[str, Any]]) -> list[Metric]:
    columns = ClusterColumns()
    apply: dict[str, Callable[[dict[str, Any]], None]] = {
        "Node": columns.apply_node,
        "Pod": columns.apply_pod,
        "ResourceQuota": columns.apply_quota,
    }
    for item in objects:
        apply[item["kind"]](item)
    return list(text_string_to_metric_families(HamiMetrics(columns).render()))


def collect_shares() -> dict[str, list[tuple[int, int]]]:
    """Collect MiB and percent that each share takes of a device, from annotations of pods: `uuid,type,mem,cores:;`."""
    held: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for pod in (item for item in CLUSTER if item["kind"] == "Pod"):
        allocated = pod["metadata"].get("annotations", {}).get("hami.io/vgpu-devices-allocated", "")
        for share in filter(None, (part.strip() for part in allocated.replace(";", ":").split(":"))):
            uuid, _, memory, cores = share.split(",")[:4]
            held[uuid].append((int(memory), int(cores)))
    return held


def derive_expected() -> dict[str, dict[tuple[str, ...], float]]:
    """Derive the series of each metric: their labels, without the zone, and the value."""
    held = collect_shares()
    series: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for node in (item for item in CLUSTER if item["kind"] == "Node"):
        text = node["metadata"].get("annotations", {}).get("hami.io/node-nvidia-register")
        for device in json.loads(text) if text else ():
            name, uuid, index = node["metadata"]["name"], device["id"], str(device.get("index", 0))
            kind, total, cores = device["type"], device["devmem"], str(device["devcore"])
            memory, compute = (sum(share[number] for share in held[uuid]) for number in (0, 1))
            plain = (name, uuid, index, kind)
            series["hami_gpu_memory_limit_bytes"][plain] = total * MIB
            series["hami_gpu_core_limit_ratio"][plain] = device["devcore"]
            series["hami_gpu_memory_allocated_bytes"][name, uuid, index, cores, kind] = memory * MIB
            series["hami_gpu_shared_count"][plain] = len(held[uuid])
            series["hami_gpu_core_allocated_ratio"][plain] = compute
            series["hami_node_gpu_overview"][name, uuid, index, cores, str(total), kind] = memory * MIB
            series["hami_node_gpu_memory_allocated_ratio"][plain] = memory / total
    for pod in (item for item in CLUSTER if item["kind"] == "Pod"):
        annotations = pod["metadata"].get("annotations", {})
        where = pod["metadata"]["namespace"], annotations.get("hami.io/vgpu-node"), pod["metadata"]["name"]
        for number, container in enumerate(annotations.get("hami.io/vgpu-devices-allocated", "").split(";")):
            for share in filter(None, container.split(":")):
                uuid, _, mib, percent = share.split(",")[:4]
                series["hami_vgpu_memory_allocated_bytes"][*where, str(number), uuid] = int(mib) * MIB
                series["hami_vgpu_core_allocated_ratio"][*where, str(number), uuid] = int(percent)
    return series


def read_samples(families: list[Metric], name: str) -> dict[tuple[str, ...], float]:
    [family] = [family for family in families if family.name == name]
    assert {sample.labels["zone"] for sample in family.samples} <= {"vGPU"}
    return {
        tuple(value for label, value in sample.labels.items() if label != "zone"): sample.value
        for sample in family.samples
    }


@pytest.mark.parametrize("name", sorted(derive_expected()))
def test_every_device_has_the_values_that_the_annotations_add_up_to(name: str) -> None:
    assert read_samples(scrape(CLUSTER), name) == pytest.approx(derive_expected()[name])


def test_the_cluster_of_the_example_uses_devices() -> None:
    allocated = derive_expected()["hami_gpu_memory_allocated_bytes"]
    assert len(allocated) > 60
    assert any(allocated.values())


def test_labels_are_named_as_hami_names_them() -> None:
    [family] = [f for f in scrape(CLUSTER) if f.name == "hami_node_gpu_overview"]
    assert list(family.samples[0].labels) == [
        "zone", "node", "device_uuid", "device_index", "device_cores", "device_memory_limit", "device_type",
    ]  # fmt: skip


def test_compute_units_of_amd_are_shown_in_percent() -> None:
    device = {"id": "a", "count": 4, "devmem": 100, "devcore": 304, "type": "AMD-MI300X", "health": True}
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "annotations": {"hami.io/node-nvidia-register": json.dumps([device])}},
    }
    pod = {
        "kind": "Pod",
        "metadata": {
            "uid": "u",
            "name": "p",
            "namespace": "ml",
            "annotations": {"hami.io/vgpu-node": "n", "hami.io/vgpu-devices-allocated": "a,NVIDIA,50,100:;"},
        },
    }
    families = scrape([node, pod])
    assert list(read_samples(families, "hami_gpu_core_limit_ratio").values()) == [100]
    assert list(read_samples(families, "hami_gpu_core_allocated_ratio").values()) == [math.ceil(100 / 304 * 100)]
    assert read_samples(families, "hami_vgpu_core_allocated_ratio") == {
        ("ml", "n", "p", "0", "a"): math.ceil(100 / 304 * 100)
    }


def test_two_shares_of_a_device_in_one_container_are_one_series() -> None:
    shares = "a,NVIDIA,10,20:a,NVIDIA,30,5:,NVIDIA,1,1:;b,NVIDIA,7,0:;"
    annotations = {"hami.io/vgpu-node": "gone", "hami.io/vgpu-devices-allocated": shares}
    pod = {"kind": "Pod", "metadata": {"uid": "u", "name": "p", "namespace": "ml", "annotations": annotations}}
    families = scrape([pod])
    # Also where the node is not known (any more).
    assert read_samples(families, "hami_vgpu_memory_allocated_bytes") == {
        ("ml", "gone", "p", "0", "a"): 40 * MIB, ("ml", "gone", "p", "1", "b"): 7 * MIB,
    }  # fmt: skip
    assert read_samples(families, "hami_vgpu_core_allocated_ratio")["ml", "gone", "p", "0", "a"] == 25


def test_a_quota_shows_its_limit_and_what_pods_hold_of_it() -> None:
    quota = {
        "kind": "ResourceQuota",
        "metadata": {"namespace": "ml", "name": "q"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "4000", "limits.cpu": "3"}},
    }
    pod = {
        "kind": "Pod",
        "metadata": {
            "uid": "u",
            "name": "p",
            "namespace": "ml",
            "annotations": {"hami.io/vgpu-node": "n", "hami.io/vgpu-devices-allocated": "a,NVIDIA,1500,30:;"},
        },
    }
    families = scrape([quota, pod])
    assert read_samples(families, "hami_resource_quota_limit") == {("ml", "nvidia.com/gpumem"): 4000}
    assert read_samples(families, "hami_resource_quota_used") == {
        ("ml", "nvidia.com/gpumem", "4000"): 1500,
        ("ml", "nvidia.com/gpucores", "0"): 30,
    }


def test_a_text_that_a_node_registers_is_escaped() -> None:
    device = {"id": 'a"\\b', "count": 1, "devmem": 1, "devcore": 100, "type": "x\ny", "health": True}
    registered = {"hami.io/node-nvidia-register": json.dumps([device])}
    families = scrape([{"kind": "Node", "metadata": {"name": "n", "annotations": registered}}])
    assert list(read_samples(families, "hami_gpu_shared_count")) == [("n", 'a"\\b', "0", "x\ny")]
