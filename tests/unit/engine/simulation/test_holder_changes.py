"""Suggestions to wait for pods that hold what a pod lacks, each proved by judging again."""

from typing import Any

from tests.support.builders.claims import a_claim, a_class, a_device, a_pod_with, a_request, a_slice, an_allocation
from tests.support.builders.cluster import Object, a_node, a_pod
from tests.support.builders.simulations import simulate

MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"


def list_ends(answer: Any) -> list[list[tuple[str, str]]]:
    """List the pods of each suggestion to wait, with what they hold."""
    edits = [item["edits"] for item in answer["suggestions"]["items"]]
    return [[(edit["where"], edit["before"]) for edit in entry] for entry in edits if entry[0]["constraint"] == "use"]


def a_pod_on_port(name: str, port: int, node: str = "") -> Object:
    pod = a_pod(name, node=node)
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
    return pod


def a_pod_with_volume(name: str, claim: str, node: str = "") -> Object:
    pod = a_pod(name, node=node)
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return pod


def a_volume(number: int, mode: str = "ReadWriteOnce") -> list[Object]:
    """Build a claim that is bound to a volume of a CSI driver, and the volume."""
    claim, volume = f"claim-{number}", f"volume-{number}"
    spec = {"accessModes": [mode], "volumeName": volume, "storageClassName": "fast"}
    source = {"csi": {"driver": "csi.example.com", "volumeHandle": volume}, "accessModes": [mode]}
    reference = {"claimRef": {"namespace": "default", "name": claim}, "storageClassName": "fast"}
    status = {"status": {"phase": "Bound"}}
    metadata = {"name": claim, "namespace": "default"}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, **status},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": source | reference,
            **status,
        },
    ]


def a_storage_class() -> Object:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "x"}


def test_pods_on_the_host_port_may_end() -> None:
    others = [a_pod_on_port("web", 80, "n1"), a_pod_on_port("other", 81, "n1")]
    assert list_ends(simulate(a_pod_on_port("p1", 80), a_node("n1"), *others)) == [[("default/web", "80/TCP")]]


def test_the_pod_that_uses_a_volume_of_one_pod_may_end() -> None:
    objects = [a_node("n1"), a_node("n2"), a_storage_class(), *a_volume(0, "ReadWriteOncePod")]
    answer = simulate(a_pod_with_volume("p1", "claim-0"), *objects, a_pod_with_volume("first", "claim-0", "n1"))
    assert list_ends(answer) == [[("default/first", "claim claim-0")]]


def test_a_pod_with_a_volume_may_end_where_the_driver_attaches_no_more() -> None:
    drivers = [{"name": "csi.example.com", "nodeID": "n1", "allocatable": {"count": 1}}]
    limits = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": drivers},
    }
    objects = [a_node("n1"), a_storage_class(), limits, *a_volume(0), *a_volume(1)]
    answer = simulate(a_pod_with_volume("p1", "claim-1"), *objects, a_pod_with_volume("first", "claim-0", "n1"))
    assert answer["sentence"]["en"] == (
        "The only node has as many volumes attached as the driver allows: csi.example.com 1/1 on n1."
    )
    assert list_ends(answer) == [[("default/first", "a volume")]]


def a_holding(claim: str, *devices: str, pod: str = "train", **result: Any) -> list[Object]:
    """Build a claim with devices and the pod that it is reserved for."""
    status = an_allocation(*devices, pods=[pod] if pod else [], **result)
    holder = a_pod_with(claim)
    holder["metadata"] |= {"name": pod, "uid": f"uid-{pod}"}
    holder["spec"]["nodeName"] = "n1"
    return [a_claim(name=claim, status=status), *([holder] if pod else [])]


def test_pods_with_devices_of_claims_may_end_alone_or_together() -> None:
    devices = [a_device(f"gpu-{number}", "80Gi") for number in range(2)]
    held = [*a_holding("one", "gpu-0", pod="train-0"), *a_holding("two", "gpu-1", pod="train-1")]
    objects = [a_node("n1"), a_class(), a_slice(*devices), *held]
    single = simulate(a_pod_with("ask"), *objects, a_claim(name="ask"))
    assert list_ends(single) == [
        [("default/train-0", "devices of claim one")],
        [("default/train-1", "devices of claim two")],
    ]
    both = simulate(a_pod_with("ask"), *objects, a_claim(a_request(count=2), name="ask"))
    assert list_ends(both) == [
        [("default/train-0", "devices of claim one"), ("default/train-1", "devices of claim two")]
    ]


def test_a_device_that_would_not_do_frees_nothing() -> None:
    devices = [a_device("gpu-0", "40Gi")]
    objects = [a_node("n1"), a_class(), a_slice(*devices), *a_holding("one", "gpu-0")]
    assert list_ends(simulate(a_pod_with("ask"), *objects, a_claim(a_request(MEMORY), name="ask"))) == []


def test_no_end_frees_a_claim_that_is_reserved_for_no_pod() -> None:
    objects = [a_node("n1"), a_class(), a_slice(a_device("gpu-0")), *a_holding("one", "gpu-0", pod="")]
    assert list_ends(simulate(a_pod_with("ask"), *objects, a_claim(name="ask"))) == []


def test_shares_and_partitions_of_a_device_may_end() -> None:
    shared = a_device("gpu-0", "80Gi", allowMultipleAllocations=True)
    amounts: Object = {"capacity": {"requests": {"memory": "50Gi"}}}
    consumed: Object = {"consumedCapacity": {"memory": "40Gi"}, "shareID": "share"}
    objects = [a_node("n1"), a_class(), a_slice(shared), *a_holding("one", "gpu-0", **consumed)]
    answer = simulate(a_pod_with("ask"), *objects, a_claim(a_request(**amounts), name="ask"))
    assert list_ends(answer) == [[("default/train", "devices of claim one")]]
    counters = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    parts = [
        a_device(name, size, consumesCounters=[{"counterSet": "gpu", "counters": {"memory": {"value": size}}}])
        for name, size in (("half", "40Gi"), ("whole", "80Gi"))
    ]
    slices = [a_slice(*parts, pool="n1", name="parts"), a_slice(name="counters", sharedCounters=counters, devices=None)]
    for entry in slices:
        entry["spec"]["pool"] = pool
    answer = simulate(
        a_pod_with("ask"),
        a_node("n1"),
        a_class(),
        *slices,
        *a_holding("one", "half"),
        a_claim(a_request(MEMORY), name="ask"),
    )
    assert list_ends(answer) == [[("default/train", "devices of claim one")]]


def test_a_selector_is_corrected_to_the_label_that_it_begins() -> None:
    node = a_node("n1", labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    pod = a_pod("p1")
    pod["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB"}
    (change,) = simulate(pod, node)["suggestions"]["items"]
    assert change["sentence"] == {
        "en": "Write nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 instead of nvidia.com/gpu.product=NVIDIA-H100-80GB "
        "in the pod's node selector: then it fits on n1.",
        "zh": "将 Pod 节点选择器中的 nvidia.com/gpu.product=NVIDIA-H100-80GB 改为 "
        "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3：之后可调度到 n1。",
    }


def test_the_request_of_the_pod_as_a_whole_is_lowered() -> None:
    pod = a_pod("p1", cpu="1")
    pod["spec"]["resources"] = {"requests": {"cpu": "20"}, "limits": {"cpu": "20"}}
    (change,) = simulate(pod, a_node("n1", cpu="16"))["suggestions"]["items"]
    assert change["sentence"]["en"] == "Lower cpu of spec.resources from 20 to 16: then it fits on n1."


def test_a_spread_over_more_domains_than_exist_says_so() -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}
    spread["labelSelector"] = {"matchLabels": {"app": "web"}}
    pod = a_pod("p1", labels={"app": "web"})
    pod["spec"]["topologySpreadConstraints"] = [spread]
    nodes = [a_node(name, labels={"zone": name}) for name in ("z1", "z2")]
    others = [a_pod(f"web-{name}", node=name, labels={"app": "web"}) for name in ("z1", "z2")]
    assert simulate(pod, *nodes, *others)["sentence"]["en"] == (
        "2 of 2 nodes do not meet the pod's topology spread constraints: maxSkew 1 over zone, pods there: z1 1, z2 1 "
        "(2 domains, minDomains 3)."
    )
