"""Obstacles of the pod as such: what kube-scheduler refuses before it looks at a node, with what the cluster has."""

import pytest

from engine.diagnosis.judged_cluster import JudgedCluster, build_judged_cluster
from engine.diagnosis.judged_pod import describe_pod_refusal
from engine.diagnosis.outcome import FoundObstacle
from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.filters.release import LATEST
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.snapshot.reading import read_snapshot
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, to_english


def build_cluster(pod: Json, *objects: Json, unread: tuple[str, ...] = ()) -> JudgedCluster:
    snapshot = read_snapshot([a_node("n1"), *objects], unread)
    judgement = judge(snapshot, pod, release=LATEST, alone=True)
    assert isinstance(judgement, Judgement)
    cluster = build_judged_cluster(snapshot, judgement, LATEST, None)
    assert cluster
    return cluster


def describe(
    words: str, *objects: Json, pod: Json | None = None, unread: tuple[str, ...] = ()
) -> tuple[str, dict[str, str | int], list[str]]:
    """Describe a refusal in kube-scheduler's words."""
    cluster = build_cluster(pod or a_pod(), *objects, unread=unread)
    [obstacle] = describe_pod_refusal(cluster, PluginRefusal("Plugin", StatusCode.UNRESOLVABLE, (words,)))
    assert isinstance(obstacle, FoundObstacle)
    assert [(item.kind, item.record, item.words) for item in obstacle.evidence] == [
        ("pod", "/api/v1/namespaces/lab/pods/job-0", words)
    ]
    texts = {name: to_english(word) for name, word in obstacle.words.items()}
    assert texts.pop("namespace", "lab") == "lab"
    return obstacle.code, texts, list(obstacle.clauses)


def an_object(kind: str, name: str, version: str = "v1", namespace: str = "lab", **fields: object) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


DRA = "resource.k8s.io/v1"


@pytest.mark.parametrize(
    ("gates", "owner"),
    [
        ("a.com/x", "The controller of a.com"),
        ("a.com/x a.com/y b.org/z plain", "The controller of a.com, b.org"),
        ("plain", "A controller that queues or prepares pods (Kueue, a quota controller, a topology operator)"),
    ],
)
def test_gates_are_described_with_the_domains_of_their_controllers(gates: str, owner: str) -> None:
    code, words, clauses = describe(f"waiting for scheduling gates: [{gates}]")
    assert (code, clauses) == ("SchedulingGated", [])
    assert words == {"count": len(gates.split()), "gates": gates.replace(" ", ", "), "owner": owner}


def test_words_without_a_description_are_quoted() -> None:
    assert describe("something else") == ("PodRefused", {"words": "something else"}, [])


def test_a_missing_and_a_lost_claim_are_named() -> None:
    missing = 'persistentvolumeclaim "data" not found'
    assert describe(missing) == ("ClaimMissing", {"claim": "data"}, ["claim"])
    lost = 'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-1"'
    assert describe(lost) == ("ClaimLost", {"claim": "data", "volume": "pv-1"}, [])


def with_claims(name: str, *claims: str, namespace: str = "lab") -> Json:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    return a_pod(name, metadata={"namespace": namespace}, spec={"nodeName": "n1", "volumes": volumes})


@pytest.mark.parametrize(
    ("pods", "users"),
    [
        ([], ""),
        ([with_claims("other", "data")], "lab/other"),
        ([with_claims("other", "logs", "data"), with_claims("third", "data")], "lab/other, lab/third"),
        ([with_claims("other", "logs")], ""),
        ([with_claims("other", "data", namespace="elsewhere")], ""),
        # The pod itself does not keep its claim from its end.
        ([with_claims("job-0", "data")], ""),
    ],
)
def test_a_claim_that_is_being_deleted_is_kept_by_the_pods_that_use_it(pods: list[Json], users: str) -> None:
    described = describe('persistentvolumeclaim "data" is being deleted', *pods)
    assert described == ("ClaimDeleted", {"claim": "data", "users": users}, ["users"] if users else [])
    assert describe('resourceclaim "data" is being deleted')[0] == "ClaimDeleted"


def a_volume_claim(name: str, *, is_bound: bool, phase: str = "Pending") -> Json:
    claim = an_object("PersistentVolumeClaim", name, spec={"volumeName": "pv" if is_bound else ""},
                      status={"phase": phase})  # fmt: skip
    if is_bound:
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return claim


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([], None),
        ([a_volume_claim("a", is_bound=True)], None),
        ([a_volume_claim("a", is_bound=True), a_volume_claim("b", is_bound=False)], ("b", "Pending")),
        ([a_volume_claim("a", is_bound=False, phase=""), a_volume_claim("b", is_bound=False)], ("a", "Pending")),
        ([a_volume_claim("a", is_bound=False, phase="Lost")], ("a", "Lost")),
    ],
)
def test_the_first_unbound_claim_is_named(claims: list[Json], expected: tuple[str, str] | None) -> None:
    pod = with_claims("job-0", "a", "b")
    pod["spec"]["volumes"].insert(0, {"name": "disk", "gcePersistentDisk": {"pdName": "d"}})
    del pod["spec"]["nodeName"]
    words = {} if expected is None else {"claim": expected[0], "phase": expected[1]}
    described = describe("pod has unbound immediate PersistentVolumeClaims", *claims, pod=pod)
    assert described == ("ClaimUnbound", words, ["claim"] if expected else [])


@pytest.mark.parametrize(
    ("claims", "near"),
    [
        ([], ""),
        ([an_object("ResourceClaim", "gpus", DRA, spec={})], "gpus"),
        ([an_object("ResourceClaim", "network", DRA, spec={})], ""),
        ([an_object("ResourceClaim", "gpus", DRA, "elsewhere", spec={})], ""),
    ],
)
def test_a_missing_claim_has_similar_names_of_its_namespace(claims: list[Json], near: str) -> None:
    described = describe('could not find ResourceClaim "lab/gpu"', *claims)
    assert described == ("DeviceClaimMissing", {"claim": "gpu", "near": near}, ["near"] if near else [])


def a_template(name: str, namespace: str = "lab") -> Json:
    return an_object("ResourceClaimTemplate", name, DRA, namespace, spec={"spec": {}})


@pytest.mark.parametrize(
    ("templates", "unread", "expected"),
    [
        ([a_template("gpu"), a_template("nic")], (),
         ("ResourceClaimNotMade", {"template": "gpu, nic", "near": ""}, [])),
        ([a_template("gpu")], (), ("ClaimTemplateMissing", {"template": "nic", "near": ""}, [])),
        ([a_template("gpus"), a_template("nic")], (),
         ("ClaimTemplateMissing", {"template": "gpu", "near": "gpus"}, ["near"])),
        ([a_template("gpu", "elsewhere"), a_template("nic")], (),
         ("ClaimTemplateMissing", {"template": "gpu", "near": ""}, [])),
        # What nobody has read may exist.
        ([], ("ResourceClaimTemplate.resource.k8s.io",),
         ("ResourceClaimNotMade", {"template": "gpu, nic", "near": ""}, [])),
    ],
)  # fmt: skip
def test_a_claim_that_was_not_made_mostly_lacks_its_template(
    templates: list[Json], unread: tuple[str, ...], expected: tuple[str, dict[str, str | int], list[str]]
) -> None:
    entries = [{"name": name, "resourceClaimTemplateName": name} for name in ("gpu", "nic", "gpu")]
    pod = a_pod(spec={"resourceClaims": [*entries, {"name": "by-name", "resourceClaimName": "c"}]})
    assert describe("ResourceClaim not created yet", *templates, pod=pod, unread=unread) == expected


def test_a_missing_class_is_named_with_those_that_exist() -> None:
    text = "request gpu: device class gpu.example.com does not exist"
    assert describe(text) == (
        "DeviceClassMissing", {"class": "gpu.example.com", "request": "gpu", "near": ""}, [],
    )  # fmt: skip
    classes = [an_object("DeviceClass", name, DRA, "", spec={}) for name in ("b.example.com", "a.example.com")]
    _, words, clauses = describe(text, *classes)
    assert (words["near"], clauses) == ("a.example.com, b.example.com", ["near"])
