"""Kubernetes' quotas in a simulation: expected by hand from what is used and what the pod asks for."""

from typing import Any

import pytest

from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.workloads import PodTemplate
from schemas.json_types import Json
from tests.support.builders.simulations import NOW, build_described

GPU = "nvidia.com/gpu"


def a_node() -> Json:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "8"}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}


def a_quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Json:
    metadata = {"name": "team", "namespace": "ml"}
    status = {"status": {"hard": hard, "used": used}} if used else {}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}} | status


def a_pod(name: str = "p", namespace: str = "ml", node: str = "", **amounts: str) -> Json:
    requests = {GPU if name == "gpu" else name: amount for name, amount in amounts.items()}
    resources = {"requests": requests, "limits": {name: text for name, text in requests.items() if "/" in name}}
    spec: Json = {"containers": [{"name": "c", "resources": resources}]} | ({"nodeName": node} if node else {})
    metadata = {"name": name, "namespace": namespace, "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def simulate(pod: Json, *objects: Json, count: int | None = None) -> Json:
    template = PodTemplate("Pod", pod["metadata"]["name"], pod, 1, {})
    return simulate_workloads(build_described(a_node(), *objects), [template], count, SimulationSetting(NOW))


def get_code(answer: Json) -> str:
    return answer["diagnosis"]["obstacle"]["code"] if answer["diagnosis"] else "fits"


@pytest.mark.parametrize(
    ("pod", "objects", "code"),
    [
        (a_pod(gpu="2"), [a_quota({f"requests.{GPU}": "3"}, {f"requests.{GPU}": "2"})], "QuotaRefusesPod"),
        (a_pod(gpu="1"), [a_quota({f"requests.{GPU}": "3"}, {f"requests.{GPU}": "2"})], "fits"),
        # Without a status, the pods of the namespace count.
        (a_pod(gpu="2"), [a_quota({f"requests.{GPU}": "3"}), a_pod("other", node="n1", gpu="2")], "QuotaRefusesPod"),
        (a_pod(gpu="2"), [a_quota({f"requests.{GPU}": "3"}), a_pod("other", "dev", "n1", gpu="2")], "fits"),
        (a_pod(cpu="2"), [a_quota({"cpu": "4"}, {"cpu": "2500m"})], "QuotaRefusesPod"),
        (a_pod(cpu="2"), [a_quota({"requests.cpu": "4500m"}, {"requests.cpu": "2500m"})], "fits"),
        (a_pod(memory="1Gi"), [a_quota({"memory": "1Gi"}, {"memory": "1"})], "QuotaRefusesPod"),
        (a_pod(), [a_quota({"pods": "1"}, {"pods": "1"})], "QuotaRefusesPod"),
        (a_pod(), [a_quota({"count/pods": "2"}, {"count/pods": "1"})], "fits"),
        # A quota for some pods only, and entries about other kinds, are not judged.
        (a_pod(cpu="2"), [a_quota({"cpu": "1"}, scopes=["BestEffort"])], "fits"),
        (a_pod(cpu="2"), [a_quota({"services": "0", "persistentvolumeclaims": "0"})], "fits"),
        # The pod exists already, and what is used has it.
        (a_pod(cpu="2"), [a_quota({"cpu": "2"}, {"cpu": "2"}), a_pod(cpu="2")], "fits"),
        (a_pod(cpu="2"), [a_quota({"cpu": "many"})], "fits"),
    ],
)
def test_a_pod_that_exceeds_a_quota_is_refused(pod: Json, objects: list[Json], code: str) -> None:
    assert get_code(simulate(pod, *objects)) == code


def test_the_sentence_has_the_quota_with_its_amounts() -> None:
    quota = a_quota({f"requests.{GPU}": "3"}, {f"requests.{GPU}": "2"})
    assert simulate(a_pod(gpu="2"), quota)["sentence"]["en"] == (
        "The API server would refuse to create the pod: quota team of namespace ml allows 3 nvidia.com/gpu, "
        "2 of them are used, and the pod asks for 2."
    )


def test_pods_that_were_placed_before_count() -> None:
    quota = a_quota({f"requests.{GPU}": "5"}, {f"requests.{GPU}": "1"})
    answer = simulate(a_pod(gpu="2"), quota, count=3)
    assert [pod["node"] for pod in answer["pods"]] == ["n1", "n1", None]
    assert get_code(answer) == "QuotaRefusesPod"
