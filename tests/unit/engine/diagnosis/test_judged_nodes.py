"""Obstacles behind kube-scheduler's verdicts: the sentences name nodes, amounts, labels, volumes and devices."""

from typing import Any

from engine.diagnosis.judged_nodes import derive_judged_obstacles
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.texts import write_likely_cause, write_remedy, write_sentence
from engine.diagnosis.tree import rank_obstacles
from engine.filters.judgement import Judgement
from engine.judging import judge_pod
from engine.snapshot.reading import read_snapshot
from tests.support.builders.cluster import a_node, a_pod, a_taint

Object = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
DRA = "resource.k8s.io/v1"


def list_obstacles(pod: Object, *objects: Object) -> list[FoundObstacle]:
    """List what keeps the pod from nodes, the most important first; every text of each can be written."""
    snapshot = read_snapshot(objects)
    assert not snapshot.rejected
    judgement = judge_pod(snapshot, pod, alone=True)
    assert isinstance(judgement, Judgement), judgement
    obstacles = rank_obstacles(derive_judged_obstacles(snapshot, judgement))
    for obstacle in obstacles:
        assert write_likely_cause(obstacle).zh
        assert write_remedy(obstacle, "default", "p1").zh
        assert write_sentence(obstacle).zh
    return obstacles


def write_all(pod: Object, *objects: Object) -> dict[str, str]:
    return {obstacle.code: write_sentence(obstacle).en for obstacle in list_obstacles(pod, *objects)}


def with_spec(pod: Object, **fields: Any) -> Object:
    pod["spec"] |= fields
    return pod


def test_a_taint_is_written_as_key_value_effect_with_its_nodes() -> None:
    tainted = [a_node(f"t{number}", taints=[a_taint("pool", "infer")]) for number in (1, 2)]
    assert write_all(a_pod(), *tainted, a_node("free")) == {
        "TaintNotTolerated": "2 of 3 nodes have a taint that the pod does not tolerate: pool=infer:NoSchedule, "
        "on t1, t2."
    }


def test_every_untolerated_taint_counts_and_taints_of_sick_nodes_are_another_obstacle() -> None:
    nodes = [
        a_node("n1", taints=[a_taint("a", "1"), a_taint("b", "", "NoExecute")]),
        a_node("n2", taints=[a_taint("a", "1")]),
        a_node("n3", taints=[a_taint("node.kubernetes.io/not-ready", "", "NoExecute")]),
    ]
    sentences = write_all(a_pod(), *nodes)
    assert ": a=1:NoSchedule (2 nodes), b:NoExecute (1 node), on n1, n2." in sentences["TaintNotTolerated"]
    assert sentences["NodeNotReady"] == "1 of 3 nodes is not ready: n3."


def test_a_cordoned_node_is_cordoned_once_though_it_is_tainted_for_it() -> None:
    node = a_node("n1", taints=[a_taint("node.kubernetes.io/unschedulable")])
    node["spec"]["unschedulable"] = True
    assert write_all(a_pod(), node, a_node("n2")) == {"NodeCordoned": "1 of 2 nodes is cordoned: n1."}


def test_a_selector_names_the_label_and_what_nodes_have_instead() -> None:
    pod = with_spec(a_pod(), nodeSelector={"card": "h100"})
    sentences = write_all(pod, a_node("n1", labels={"card": "t4"}), a_node("n2"))
    assert sentences["AffinityMismatch"].endswith("affinity: card=h100; they have card = t4 (1).")


def test_terms_of_affinity_name_the_conditions_of_which_any_would_do() -> None:
    terms = [
        {"matchExpressions": [{"key": "card", "operator": "In", "values": ["a", "b"]}]},
        {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["4"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = with_spec(a_pod(), affinity={"nodeAffinity": required})
    assert ": card in (a, b) or size > 4; they have no card, size = 2 (1)." in str(
        write_all(pod, a_node("n1", labels={"size": "2"}))
    )


def test_an_amount_beyond_the_largest_node_names_both_amounts() -> None:
    pod = a_pod(cpu="16", memory="40Gi")
    sentences = [write_sentence(o).en for o in list_obstacles(pod, a_node("n1"), a_node("n2", cpu="12", memory="32Gi"))]
    assert "asks for 16 cpu, and the largest node, n2, has 12 (20 on all nodes together)" in sentences[0]
    assert "asks for 40Gi memory, and the largest node, n2, has 32Gi (48Gi on all nodes together)" in sentences[1]


def test_an_amount_in_use_names_the_holders_and_whose_end_would_do() -> None:
    [obstacle] = list_obstacles(a_pod(gpu="2"), a_node("n1", gpu="4"), a_pod("h1", node="n1", gpu="3"))
    assert (obstacle.code, obstacle.numbers["asked"], obstacle.numbers["free"]) == ("ResourceInUse", 2, 1)
    sentence = write_sentence(obstacle).en
    assert (
        "2 asked, at most 1 free on one node; held by default/h1 (3 on n1); the end of default/h1 would do" in sentence
    )


def test_a_resource_of_no_node_names_the_nearest_and_the_node_that_should_have_it() -> None:
    labelled = a_node("n1", labels={"nvidia.com/gpu.present": "true"})
    other = a_node("n2")
    other["status"]["allocatable"]["nvidia.com/mig-2g.20gb"] = "3"
    sentences = write_all(a_pod(gpu="1"), labelled, other)
    assert "offers nvidia.com/gpu, of which the pod asks for 1" in sentences["ResourceNotOffered"]
    assert "nvidia.com/mig-2g.20gb (3 on 1 node)" in sentences["ResourceNotOffered"]
    assert "by its labels, n1 should" in sentences["ResourceNotOffered"]


def test_a_resource_behind_a_taint_names_the_node_and_the_taint() -> None:
    sentences = write_all(a_pod(gpu="1"), a_node("n1"), a_node("n2", gpu="8", taints=[a_taint("gpu", "yes")]))
    assert "closed to the pod (1 asked): n2 (8 free; taint gpu=yes:NoSchedule)" in sentences["ResourceBehindConstraint"]


def test_a_closed_node_that_is_full_as_well_does_not_have_the_resource() -> None:
    pod = with_spec(a_pod(cpu="4"), nodeSelector={"card": "a100"})
    sentences = write_all(pod, a_node("n1", labels={"card": "t4"}), a_pod("h", node="n1", cpu="7"))
    assert sentences["InsufficientResource"] == "The only node has too little cpu left: 4 asked, at most 1 free, on n1."
    assert "ResourceBehindConstraint" not in sentences


def test_a_taint_of_other_nodes_comes_after_what_refuses_the_nodes_that_the_pod_may_use() -> None:
    control = [a_node(f"c{number}", taints=[a_taint("node-role.kubernetes.io/control-plane")]) for number in range(3)]
    obstacles = list_obstacles(a_pod(gpu="2"), *control, a_node("n1", gpu="1"))
    assert [obstacle.code for obstacle in obstacles] == ["ResourceNeverEnough", "ControlPlaneTaint"]
    assert obstacles[1].is_aside


def test_a_port_names_its_holder() -> None:
    pod, other = a_pod(), a_pod("h1", node="n1")
    for each_pod in (pod, other):
        each_pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    assert "is taken: 8080/TCP; default/h1 has 8080/TCP on n1" in write_all(pod, a_node("n1"), other)["PortTaken"]


def an_affinity(kind: str, app: str) -> Object:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_terms_about_other_pods_name_the_pods() -> None:
    near = with_spec(a_pod(), affinity=an_affinity("podAffinity", "db"))
    sentence = write_all(near, a_node())["PodAffinityMismatch"]
    assert "this pod has to be: pods with app=db by kubernetes.io/hostname" in sentence
    apart = with_spec(a_pod(), affinity=an_affinity("podAntiAffinity", "db"))
    neighbour = a_pod("db-0", node="n1", labels={"app": "db"})
    assert "app=db by kubernetes.io/hostname: default/db-0" in str(write_all(apart, a_node(), neighbour))
    shy = with_spec(a_pod("shy", node="n1"), affinity=an_affinity("podAntiAffinity", "web"))
    assert "stay away from pods with app=web" in str(write_all(a_pod(labels={"app": "web"}), a_node(), shy))


def test_a_spread_names_the_constraint_and_the_pods_of_each_domain() -> None:
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    pod = with_spec(a_pod(labels={"app": "a"}), topologySpreadConstraints=[constraint])
    nodes = [a_node("n1", labels={ZONE: "z1"}), a_node("n2", labels={ZONE: "z2"}, taints=[a_taint("t")]), a_node("n3")]
    running = a_pod("a1", node="n1", labels={"app": "a"})
    obstacles = list_obstacles(pod, *nodes, running)
    spread = [write_sentence(obstacle).en for obstacle in obstacles if obstacle.code == "TopologySpread"]
    assert f"constraints: maxSkew 1 over {ZONE}, pods there: z1 1, z2 0 (n1)." in spread[1]
    assert f"constraints: they have no label {ZONE} (n3)." in spread[0]


def a_claimed_pod(claim: str = "data") -> Object:
    return with_spec(a_pod(), volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def a_volume_claim(phase: str = "Bound", binding: str = "slow") -> list[Object]:
    """Build a claim of a class with a binding mode, and its volume in the zone z2."""
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z2"]}]}]
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "namespace": "default",
                "name": "data",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"volumeName": "pv-1", "storageClassName": binding},
            "status": {"phase": phase},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv-1"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": binding},
            "provisioner": "p",
            "volumeBindingMode": "Immediate",
        },
    ]


def test_a_volume_elsewhere_names_claim_volume_and_zone() -> None:
    sentence = write_all(a_claimed_pod(), a_node("n1", labels={ZONE: "z1"}), *a_volume_claim())["VolumeElsewhere"]
    assert f"pv-1 of claim data, only on nodes with {ZONE}=z2" in sentence
    assert "the class of data made its volume before a node was chosen" in sentence


def test_claims_that_refuse_the_pod_as_such_are_named() -> None:
    assert "bound to the volume pv-1, which no longer exists: the claim is Lost" in str(
        write_all(a_claimed_pod(), a_node(), *a_volume_claim("Lost"))
    )
    leaving = a_volume_claim()
    leaving[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    user = a_claimed_pod()
    user["metadata"] |= {"name": "old", "uid": "old"}
    sentence = write_all(a_claimed_pod(), a_node(), *leaving, user)["ClaimDeleted"]
    assert sentence == "The pod's PersistentVolumeClaim data is being deleted; pods that still use it: default/old."
    assert "does not exist: absent" in write_all(a_claimed_pod("absent"), a_node())["ClaimMissing"]


def a_device_claim(memory: str, devices: list[Object], class_name: str = "gpus") -> list[Object]:
    """Build a claim for one device of at least some memory, its class, and the slice of node n1."""
    expression = f"device.capacity['gpu.example.com'].memory.compareTo(quantity('{memory}')) >= 0"
    exactly = {
        "deviceClassName": class_name,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}}],
    }
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": devices}
    return [
        {"apiVersion": DRA, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
        {"apiVersion": DRA, "kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}},
        {
            "apiVersion": DRA,
            "kind": "ResourceClaim",
            "metadata": {"namespace": "default", "name": "big", "uid": "uid-big"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        },
    ]


def a_claiming_pod(claim: str = "big") -> Object:
    return with_spec(a_pod(), resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])


def test_a_claim_that_no_device_meets_names_the_value_and_what_is_asked() -> None:
    devices = [{"name": f"d{number}", "capacity": {"memory": {"value": "46068Mi"}}} for number in range(2)]
    objects = [a_node("n1"), a_node("c1", taints=[a_taint("control")]), *a_device_claim("80Gi", devices)]
    [obstacle, aside] = list_obstacles(a_claiming_pod(), *objects)
    assert (obstacle.code, aside.code) == ("DevicesNotMatched", "TaintNotTolerated")
    sentence = write_sentence(obstacle).en
    assert "request gpu of the pod's claim big, on 2 of 2 nodes: none of 2 devices" in sentence
    assert "2/2 SelectorNotMatched" in sentence
    assert "46068Mi, asked at least 80Gi" in sentence
    assert obstacle.numbers["SelectorNotMatched"] == 2


def test_a_class_and_a_claim_that_do_not_exist_name_those_that_do() -> None:
    objects = [a_node("n1"), *a_device_claim("1Gi", [{"name": "d"}], "other")]
    sentence = write_all(a_claiming_pod(), *objects)["DeviceClassMissing"]
    assert sentence.endswith("the DeviceClass other, which the cluster does not have; it has gpus.")
    sentence = write_all(a_claiming_pod("bigg"), *objects)["DeviceClaimMissing"]
    assert sentence.endswith("which does not exist in namespace default; the nearest name that exists is big.")


def test_a_template_that_does_not_exist_is_the_obstacle_of_a_claim_that_was_not_made() -> None:
    reference = {"name": "gpu", "resourceClaimTemplateName": "single"}
    pod = with_spec(a_pod(), resourceClaims=[reference])
    assert (
        "names the ResourceClaimTemplate single, which does not exist"
        in write_all(pod, a_node())["ClaimTemplateMissing"]
    )


def test_gates_are_named() -> None:
    pod = with_spec(a_pod(), schedulingGates=[{"name": "example.com/quota"}])
    assert write_all(pod, a_node())["SchedulingGated"].endswith("holds the pod back: example.com/quota.")
