"""PersistentVolumeClaims of a pod: by their objects and events, and by the words of VolumeBinding and VolumeZone."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import Claim, DiagnosisFacts, Evidence, NodeFacts, PodOnCluster
from engine.diagnosis.layers.volumes import check_claims
from engine.diagnosis.outcome import FoundObstacle, TreeStep
from engine.snapshot.case_objects import collect_objects
from schemas.events import Condition
from schemas.json_types import Json
from tests.support.builders.events import a_summary
from tests.support.builders.layer_objects import to_english

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
POD = Evidence("pod", "lab/job-0")


def a_claim(name: str = "data", phase: str = "Bound", **fields: Any) -> Claim:
    return Claim(name, Evidence("claim", f"claims/{name}"), phase, **fields)


def an_object(kind: str, name: str, version: str = "v1", namespace: str = "lab", **fields: Any) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def check(*objects: Json, claims: tuple[Claim, ...] | None = (), words: str = "", **more: Any) -> TreeStep | None:
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=words)
    pod = PodOnCluster(POD, spec=more.pop("spec", {}), conditions=[condition] if words else [])
    plain: dict[str, Any] = {"pod": pod, "objects": collect_objects(objects), "claims": claims} | more
    steps = list(check_claims(DiagnosisFacts("default", "lab", "job-0", NOW, **plain)))
    assert len(steps) <= 1
    return steps[0] if steps else None


def find(*objects: Json, **more: Any) -> FoundObstacle | None:
    step = check(*objects, **more)
    return step.obstacles[0] if step and step.obstacles else None


@pytest.mark.parametrize(
    ("claim", "code", "clauses"),
    [
        (a_claim(), "", []),
        (a_claim(phase=""), "ClaimMissing", ["claim"]),
        (a_claim(phase="Lost", volume="pv-1"), "ClaimLost", []),
        (a_claim(phase="Pending", waits_for_pod=False), "ClaimUnbound", ["claim"]),
        # It is bound when the pod has a node; of an unknown class that may be so.
        (a_claim(phase="Pending", waits_for_pod=True), "", []),
        (a_claim(phase="Pending"), "", []),
        (a_claim(deleted_at=NOW), "ClaimDeleted", ["since"]),
        (a_claim(phase="Lost", deleted_at=NOW), "ClaimDeleted", ["since"]),
        (
            a_claim(deleted_at=NOW, finalizers=("kubernetes.io/pvc-protection",)),
            "ClaimDeleted",
            ["since", "finalizers"],
        ),
    ],
)
def test_a_claim_keeps_its_pod_from_nodes_by_its_phase(claim: Claim, code: str, clauses: list[str]) -> None:
    step = check(claims=(claim,))
    assert step
    assert step.answer == ("no" if code else "yes")
    assert [(obstacle.code, list(obstacle.clauses)) for obstacle in step.obstacles] == (
        [(code, clauses)] if code else []
    )
    assert [source.words for source in step.evidence] == [claim.phase or "not found"]


def test_each_claim_has_its_first_obstacle() -> None:
    words = 'persistentvolumeclaim "data" not found'
    claims = (a_claim("logs", "Lost"), a_claim(phase=""), a_claim("more", ""))
    step = check(claims=claims, words=words)
    assert step
    assert [(obstacle.code, obstacle.words["claim"]) for obstacle in step.obstacles] == [
        ("ClaimLost", "logs"), ("ClaimMissing", "data"), ("ClaimMissing", "more"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "near", "clauses"),
    [(("dataa", "logs"), "dataa", ["claim", "near"]), (("logs",), "", ["claim"]), ((), "", ["claim"])],
)
def test_a_claim_that_does_not_exist_has_the_names_that_are_near(
    names: tuple[str, ...], near: str, clauses: list[str]
) -> None:
    objects = [an_object("PersistentVolumeClaim", name) for name in names]
    far = an_object("PersistentVolumeClaim", "data", namespace="other")
    obstacle = find(*objects, far, claims=(a_claim(phase=""),))
    assert obstacle
    assert (to_english(obstacle.words["near"]), obstacle.clauses) == (near, clauses)


def a_user(name: str, claim: str = "data", phase: str = "Running", namespace: str = "lab") -> Json:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return an_object("Pod", name, namespace=namespace, spec={"volumes": volumes}, status={"phase": phase})


def test_a_claim_that_is_being_deleted_names_the_pods_that_still_use_it() -> None:
    users = [
        a_user("job-0"), a_user("a"), a_user("b", phase="Pending"), a_user("c", phase="Succeeded"),
        a_user("d", phase="Failed"), a_user("e", "other"), a_user("f", namespace="far"),
    ]  # fmt: skip
    obstacle = find(*users, claims=(a_claim(deleted_at=NOW),))
    assert obstacle
    assert (to_english(obstacle.words["users"]), obstacle.clauses) == ("a, b", ["since", "users"])
    assert obstacle.words["since"] == "2026-11-24 08:30:00 UTC"


def an_event(reason: str, note: str, minute: int, name: str = "data") -> Json:
    regarding = {"kind": "PersistentVolumeClaim", "namespace": "lab", "name": name}
    return an_object("Event", f"{name}.{minute}", "events.k8s.io/v1", regarding=regarding, reason=reason, note=note,
                     eventTime=f"2026-11-24T08:{minute:02}:00Z")  # fmt: skip


def test_a_pending_claim_has_the_latest_words_of_its_provisioner() -> None:
    events = [an_event("ProvisioningFailed", "old", 1), an_event("ProvisioningFailed", "no space", 2),
              an_event("WaitForFirstConsumer", "x", 3), an_event("ProvisioningFailed", "far", 4, "other")]  # fmt: skip
    for waits in (True, False, None):
        obstacle = find(*events, claims=(a_claim(phase="Pending", waits_for_pod=waits),))
        assert obstacle
        assert (obstacle.code, obstacle.words["words"], obstacle.clauses) == (
            "ClaimUnbound",
            "no space",
            ["claim", "words"],
        )
        assert [source.kind for source in obstacle.evidence] == ["claim", "event"]
    assert find(*events, claims=(a_claim(),)) is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ('persistentvolumeclaim "data" is being deleted', "ClaimDeleted"),
        ('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-1"', "ClaimLost"),
        ('persistentvolumeclaim "data" not found', "ClaimMissing"),
        ('waiting for ephemeral volume controller to create the persistentvolumeclaim "data"', "ClaimNotMade"),
        ("0/3 nodes are available: 3 Insufficient cpu.", ""),
    ],
)
def test_without_the_objects_the_schedulers_words_name_the_claim(words: str, code: str) -> None:
    for more in ({"claims": None}, {"claims": (a_claim(),), "is_latest": False}):
        obstacle = find(words=words, **more)
        assert (obstacle.code if obstacle else "") == code
        if obstacle:
            assert obstacle.words["claim"] == "data"
            assert obstacle.clauses == (["claim"] if code == "ClaimMissing" else [])
    # What was read is younger than the words: a claim that is there now is no obstacle.
    assert find(words=words, claims=(a_claim(),)) is None


def test_a_claim_that_its_controller_has_not_made_is_not_missing() -> None:
    words = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "data"'
    obstacle = find(claims=(a_claim(phase=""),), words=words)
    assert obstacle
    assert obstacle.code == "ClaimNotMade"
    other = find(claims=(a_claim("other", ""),), words=words)
    assert other
    assert other.code == "ClaimMissing"


@pytest.mark.parametrize(
    ("claims", "words", "attempt", "answer"),
    [
        (None, "", False, "not known"),
        (None, "", True, None),
        (None, 'persistentvolumeclaim "data" not found', False, "no"),
        ((), "", False, "yes"),
        ((), "", True, None),
        ((a_claim(),), "", True, "yes"),
    ],
)
def test_the_question_is_asked_where_its_answer_matters(
    claims: tuple[Claim, ...] | None, words: str, attempt: bool, answer: str | None
) -> None:
    step = check(claims=claims, words=words, attempt=a_summary() if attempt else None)
    assert (step.answer if step else None) == answer


def a_volume(*terms: list[tuple[str, str, list[str]]]) -> Json:
    listed = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in term]}
        for term in terms
    ]
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": listed}}}
    return an_object("PersistentVolume", "pv-1", namespace="", spec=spec)


AFFINITY = "0/5 nodes are available: 2 node(s) had volume node affinity conflict, 3 Insufficient cpu."


@pytest.mark.parametrize(
    "words",
    [
        AFFINITY,
        "0/5 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity, 3 Insufficient cpu.",
        "0/5 nodes are available: 2 node(s) had no available volume zone.",
    ],
)
def test_a_volume_out_of_reach_is_named_with_the_labels_of_its_nodes(words: str) -> None:
    volume = a_volume([("zone", "In", ["a", "b"]), ("disk", "Exists", [])], [("host", "In", ["n1"])])
    bound = a_claim(volume="pv-1", waits_for_pod=False)
    obstacle = find(volume, claims=(a_claim("unbound", "Pending"), bound), words=words)
    assert obstacle
    assert (obstacle.code, obstacle.numbers) == ("VolumeOutOfReach", {"nodes": 2, "of_nodes": 5})
    assert obstacle.clauses == ["volumes", "at_once"]
    assert to_english(obstacle.words["at_once"]) == "data"
    volumes = str(to_english(obstacle.words["volumes"]))
    assert "pv-1" in volumes
    assert "zone In a, b and disk Exists or host In n1" in volumes
    assert [source.record for source in obstacle.evidence] == ["lab/job-0", "claims/data"]


def test_a_volume_without_labels_is_named_and_one_of_no_claim_is_the_schedulers_count() -> None:
    obstacle = find(claims=(a_claim(volume="pv-1"),), words=AFFINITY)
    assert obstacle
    assert obstacle.clauses == ["volumes"]
    assert find(claims=(a_claim(),), words=AFFINITY) is None
    assert find(claims=(a_claim(volume="pv-1"),), words="0/5 nodes are available: 5 Insufficient cpu.") is None


def a_node(name: str, *, is_cordoned: bool = False) -> NodeFacts:
    return NodeFacts(name, Evidence("node", name), node={"spec": {"unschedulable": is_cordoned}, "metadata": {}})


def test_the_nodes_that_are_open_to_the_pod_are_named_where_others_are_closed() -> None:
    nodes = [a_node("n2"), a_node("n1"), a_node("n3", is_cordoned=True), NodeFacts("n4", Evidence("node", "n4"))]
    obstacle = find(claims=(a_claim(),), words=AFFINITY, nodes=nodes)
    assert obstacle
    assert (list(obstacle.nodes), obstacle.clauses) == (["n1", "n2"], ["nodes"])
    assert find(claims=(a_claim(),), words=AFFINITY, nodes=nodes[:2]) is None


UNAVAILABLE = "0/5 nodes are available: 2 node(s) didn't find available persistent volumes to bind."


@pytest.mark.parametrize(
    ("objects", "claim", "expected"),
    [
        ([], a_claim(phase="Pending", waits_for_pod=True), ("?", "?", [])),
        (
            [an_object("PersistentVolumeClaim", "data", spec={
                "storageClassName": "local", "resources": {"requests": {"storage": "10Gi"}}})],
            a_claim(phase="Pending", waits_for_pod=True), ("local", "10Gi", []),
        ),
        (
            [an_object("PersistentVolumeClaim", "data", spec={"storageClassName": "local"}),
             an_object("StorageClass", "local", "storage.k8s.io/v1", "", provisioner="kubernetes.io/no-provisioner")],
            a_claim(phase="Pending", waits_for_pod=True), ("local", "?", ["static"]),
        ),
        (
            [an_object("PersistentVolumeClaim", "data", spec={"storageClassName": "local"}),
             an_object("StorageClass", "local", "storage.k8s.io/v1", "", provisioner="csi.example.org")],
            a_claim(phase="Pending", waits_for_pod=True), ("local", "?", []),
        ),
        ([], a_claim(phase="Pending"), None),
        ([], a_claim(phase="Bound", waits_for_pod=True), None),
    ],
)  # fmt: skip
def test_a_claim_without_a_volume_on_any_node_has_its_class_and_size(
    objects: list[Json], claim: Claim, expected: tuple[str, str, list[str]] | None
) -> None:
    obstacle = find(*objects, claims=(claim,), words=UNAVAILABLE)
    named = (obstacle.words["class"], obstacle.words["size"], obstacle.clauses) if obstacle else None
    assert named == expected
    if obstacle:
        assert (obstacle.code, obstacle.numbers) == ("NoVolumeForClaim", {"nodes": 2})
