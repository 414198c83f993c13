"""Words about other pods, volumes and devices in both languages: names and numbers stay, everything else is Chinese."""

from typing import Any

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import collect_objects
from schemas.answers.diagnosis import InBothLanguages
from schemas.json_types import Json
from tests.support.builders import claims
from tests.support.builders.layer_objects import NOW, a_node, a_pod

ZONE = "topology.kubernetes.io/zone"


def judge(*objects: Json) -> InBothLanguages:
    """Judge the pod ``job-0``, and return the sentence."""
    facts = CaseFacts(collect_objects(objects), NOW)
    return diagnose(facts.build("lab", "job-0"), judged=facts.judge("lab", "job-0")).sentence


def a_namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def an_affinity(**term: Any) -> Json:
    selector = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selector | term]}}}


def test_a_selector_of_namespaces_is_named_with_those_that_have_its_labels() -> None:
    spec = an_affinity(namespaceSelector={"matchLabels": {"tier": "data"}})
    node, namespace = a_node("n1", labels={"kubernetes.io/hostname": "n1"}), a_namespace("lab")
    nowhere = judge(a_pod(spec=spec), node, namespace, a_namespace("store", tier="dat"))
    assert "pods with app=cache of the namespaces with tier=data, which no namespace has, by" in nowhere.en
    assert "带 tier=data 的命名空间（目前没有）中带 app=cache 的 Pod（按 kubernetes.io/hostname）" in nowhere.zh
    somewhere = judge(a_pod(spec=spec), node, namespace, a_namespace("store", tier="data"))
    assert "pods with app=cache of the namespaces with tier=data (store) by kubernetes.io/hostname" in somewhere.en
    listed = judge(a_pod(spec=an_affinity(namespaces=["store"])), node, namespace)
    assert "pods with app=cache of the namespaces store by kubernetes.io/hostname" in listed.en
    unnamed = judge(a_pod(spec=an_affinity()), node, namespace)
    assert "pods with app=cache by kubernetes.io/hostname" in unnamed.en


def test_a_port_names_its_holder() -> None:
    containers = [{"name": "m", "resources": {}, "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]}]
    holder = a_pod("web", spec={"containers": containers, "nodeName": "n1"})
    sentence = judge(a_pod(spec={"containers": containers}), holder, a_node("n1"))
    assert "lab/web has 8080/TCP on n1" in sentence.en
    assert "n1 上的 lab/web 占用 8080/TCP" in sentence.zh


def test_too_few_domains_are_counted() -> None:
    constraint = {
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }  # fmt: skip
    web = {"labels": {"app": "web"}}
    nodes = [a_node(f"n{zone}", labels={ZONE: f"z{zone}"}) for zone in (1, 2)]
    placed = [a_pod(f"web-{zone}", metadata=web, spec={"nodeName": f"n{zone}"}) for zone in (1, 2)]
    sentence = judge(a_pod(metadata=web, spec={"topologySpreadConstraints": [constraint]}), *placed, *nodes)
    assert f"maxSkew 1 over {ZONE}, pods there: z1 1, z2 1 (2 domains, minDomains 3)" in sentence.en
    assert f"{ZONE} 的 maxSkew 为 1，各域的 Pod 数：z1 1, z2 1（只有 2 个域，minDomains 为 3）" in sentence.zh


def test_devices_that_differ_in_a_matched_attribute_have_both_values() -> None:
    devices = [claims.a_device(f"gpu-{numa}", attributes={"numa": numa}) for numa in (0, 1)]
    match = {"requests": ["a", "b"], "matchAttribute": "gpu.nvidia.com/numa"}
    claim = claims.a_claim(claims.a_request(name="a"), claims.a_request(name="b"), name="two", constraints=[match])
    claim["metadata"]["namespace"] = "lab"
    pod = a_pod(spec={"resourceClaims": [{"name": "gpus", "resourceClaimName": "two"}]})
    sentence = judge(pod, a_node("n1"), claims.a_class(), claims.a_slice(*devices), claim)
    assert "matchAttribute gpu.nvidia.com/numa: 1, the devices taken before it have 0" in sentence.en
    assert "n1 上的 gpu-1：matchAttribute gpu.nvidia.com/numa：1，先选中的设备为 0" in sentence.zh
