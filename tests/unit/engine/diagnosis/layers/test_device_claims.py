"""ResourceClaims of a pod: by their objects as `resource.k8s.io/v1` has them, and by the scheduler's words."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.device_claims import check_device_claims, iterate_claims
from engine.diagnosis.outcome import FoundObstacle, TreeStep
from engine.snapshot.case_objects import collect_objects
from schemas.events import Condition
from schemas.json_types import Json
from tests.support.builders.layer_objects import to_english

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
BY_NAME: Json = {"name": "gpu", "resourceClaimName": "shared"}
BY_TEMPLATE: Json = {"name": "gpu", "resourceClaimTemplateName": "single"}


def an_object(kind: str, name: str, namespace: str = "lab", **fields: Any) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, **fields}


def a_class(name: str) -> Json:
    return an_object("DeviceClass", name, "")


def a_claim(*requests: Json, name: str = "shared", **status: Any) -> Json:
    return an_object("ResourceClaim", name, spec={"devices": {"requests": list(requests)}}, status=status)


def a_template(name: str) -> Json:
    return an_object("ResourceClaimTemplate", name)


def a_pod(*requests: Json, claim_name: str = "") -> Json:
    statuses = [{"name": "gpu", "resourceClaimName": claim_name}] if claim_name else []
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job-0", "namespace": "lab"},
        "spec": {"resourceClaims": list(requests)}, "status": {"resourceClaimStatuses": statuses},
    }  # fmt: skip


def build_facts(*objects: Json, claims: tuple[Json, ...] = (), words: str = "", **more: Any) -> DiagnosisFacts:
    refusal = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=words)
    conditions = [refusal] if words else []
    pod = PodOnCluster(Evidence("pod", "lab/job-0"), spec={"resourceClaims": list(claims)}, conditions=conditions)
    unread = more.pop("unread", ())
    plain: dict[str, Any] = {"pod": pod, "objects": collect_objects(objects, unread)} | more
    return DiagnosisFacts("default", "lab", "job-0", NOW, **plain)


def check(*objects: Json, **more: Any) -> TreeStep | None:
    steps = list(check_device_claims(build_facts(*objects, **more)))
    assert len(steps) <= 1
    return steps[0] if steps else None


def find(*objects: Json, **more: Any) -> FoundObstacle | None:
    step = check(*objects, **more)
    return step.obstacles[0] if step and step.obstacles else None


def find_code(*objects: Json, **more: Any) -> str:
    obstacle = find(*objects, **more)
    return obstacle.code if obstacle else ""


OTHER = a_claim(name="shard")


@pytest.mark.parametrize(
    ("objects", "more", "answer", "clauses"),
    [
        ([a_claim()], {}, "yes", None),
        ([OTHER], {}, "no", ["near"]),
        ([a_class("gpu")], {}, "no", []),
        # Without any object of claims the pod's own words decide: not tried at all, or tried and refused for more.
        ([], {}, "no", ["unread"]),
        ([], {"words": "0/3 nodes are available: 3 Insufficient cpu."}, "not known", None),
        ([OTHER], {"words": "0/3 nodes are available: 3 Insufficient cpu."}, "no", ["near"]),
        ([OTHER], {"unread": ("ResourceClaim.resource.k8s.io",)}, "not known", None),
        # The objects of now do not explain an attempt that others followed.
        ([OTHER], {"is_latest": False}, "yes", None),
    ],
)
def test_a_claim_is_missing_where_claims_were_read_and_it_is_not_among_them(
    objects: list[Json], more: dict[str, Any], answer: str, clauses: list[str] | None
) -> None:
    step = check(*objects, claims=(BY_NAME,), **more)
    assert step
    assert step.answer == answer
    assert [(obstacle.code, list(obstacle.clauses)) for obstacle in step.obstacles] == (
        [("DeviceClaimMissing", clauses)] if clauses is not None else []
    )


def test_a_pod_without_claims_is_not_asked_about_them() -> None:
    assert check(OTHER) is None
    assert check(OTHER, pod=None) is None
    step = check(claims=(BY_NAME,), objects=None)
    assert step
    assert (step.answer, list(step.evidence), list(step.obstacles)) == ("not known", [Evidence("pod", "lab/job-0")], [])


@pytest.mark.parametrize(
    ("objects", "more", "clauses"),
    [
        ([a_template("singles")], {}, ["near"]),
        ([a_template("other-shape")], {}, []),
        ([a_template("single")], {}, None),
        ([a_class("gpu")], {}, []),
        # The claim was made before somebody deleted the template.
        ([a_class("gpu"), a_pod(BY_TEMPLATE, claim_name="job-0-gpu")], {}, None),
        ([a_class("gpu"), a_pod(BY_TEMPLATE)], {}, []),
        ([], {}, None),
        ([a_class("gpu")], {"unread": ("ResourceClaimTemplate.resource.k8s.io",)}, None),
    ],
)
def test_a_template_is_missing_where_no_claim_was_made_from_it(
    objects: list[Json], more: dict[str, Any], clauses: list[str] | None
) -> None:
    obstacle = find(*objects, claims=(BY_TEMPLATE,), **more)
    assert (obstacle.code if obstacle else None) == (None if clauses is None else "ClaimTemplateMissing")
    assert (list(obstacle.clauses) if obstacle else None) == clauses


def ask(*classes: str) -> Json:
    """Ask for a device of one class, or of the first of several that is available."""
    if len(classes) == 1:
        return {"name": "r", "exactly": {"deviceClassName": classes[0]}}
    return {"name": "r", "firstAvailable": [{"name": f"s{name}", "deviceClassName": name} for name in classes]}


@pytest.mark.parametrize(
    ("request_", "classes", "missing"),
    [
        (ask("gpu"), ["gpu"], ""),
        (ask("gpu"), ["npu"], "gpu"),
        # As `v1beta1` writes it.
        ({"name": "r", "deviceClassName": "gpu"}, ["npu"], "gpu"),
        # One alternative with a class is enough.
        (ask("a100", "gpu"), ["gpu"], ""),
        (ask("a100", "h100"), ["gpu"], "a100"),
        ({"name": "r"}, ["gpu"], ""),
        (ask("gpu"), [], ""),
    ],
)
def test_a_class_is_missing_where_no_alternative_has_one(request_: Json, classes: list[str], missing: str) -> None:
    obstacle = find(a_claim(ask("other"), request_), a_class("other"), *map(a_class, classes), claims=(BY_NAME,))
    expected = missing if classes else "gpu"
    assert (obstacle.words["class"] if obstacle else "") == expected
    if obstacle:
        assert (obstacle.code, obstacle.words["claim"], obstacle.words["request"]) == (
            "DeviceClassMissing",
            "shared",
            "r",
        )


def test_a_claim_with_devices_or_classes_that_were_not_read_is_no_obstacle() -> None:
    allocated = a_claim(ask("gpu"), allocation={"devices": {"results": []}, "x": 1})
    assert find(allocated, a_class("npu"), claims=(BY_NAME,)) is None
    assert find(a_claim(ask("gpu")), claims=(BY_NAME,)) is None


def test_the_nearest_classes_are_named_and_all_where_none_is_near() -> None:
    for existing, near in ((["gpu.nvidia.com", "zzz"], "gpu.nvidia.com"), (["zzz", "yyy"], "yyy, zzz")):
        obstacle = find(a_claim(ask("gpus.nvidia.com")), *map(a_class, existing), claims=(BY_NAME,))
        assert obstacle
        assert (to_english(obstacle.words["near"]), obstacle.clauses) == (near, ["claim", "near"])


RESERVED = a_claim(reservedFor=[{"name": "job-0"}, {"name": "other-1"}])
ALLOCATED = a_claim(
    allocation={"devices": {"results": [{"device": "gpu-0", "pool": "n1"}, {"device": "gpu-1", "pool": "n1"}]}}
)


@pytest.mark.parametrize(
    ("words", "objects", "code", "expected"),
    [
        ("0/3 nodes are available: request r: device class gpu does not exist.", [], "DeviceClassMissing",
         {"class": "gpu", "request": "r", "claim": "", "near": ""}),
        ("0/3 nodes are available: request r: device class gpu does not exist.", [a_claim(ask("gpu"))],
         "DeviceClassMissing", {"claim": "shared"}),
        ('0/3 nodes are available: resourceclaim.resource.k8s.io "lost" not found.', [], "DeviceClaimMissing",
         {"claim": "lost"}),
        ("claim lab/shared: selector #0: CEL runtime error: no such key: memory", [], "DeviceSelectorFails",
         {"claim": "lab/shared"}),
        ("0/3 nodes are available: resourceclaim in use.", [RESERVED], "DeviceClaimReserved",
         {"claims": "shared", "users": "other-1"}),
        ("resourceclaim in use", [], "DeviceClaimReserved", {"claims": "", "users": ""}),
        ("0/3 nodes are available: 2 resourceclaim not available on the node, 1 Insufficient cpu.", [ALLOCATED],
         "DeviceClaimElsewhere", {"claim": "shared", "refused": 2, "devices": "gpu-0 of pool n1, gpu-1 of pool n1"}),
        ("0/3 nodes are available: 2 resourceclaim not available on the node.", [a_claim()], "", {}),
        ("0/3 nodes are available: 3 Insufficient cpu.", [ALLOCATED], "", {}),
    ],
)  # fmt: skip
def test_the_schedulers_words_about_a_claim_are_explained_by_its_object(
    words: str, objects: list[Json], code: str, expected: dict[str, Any]
) -> None:
    obstacle = find(*objects, claims=(BY_NAME,) if objects else (), words=words)
    assert (obstacle.code if obstacle else "") == code
    if obstacle:
        assert {name: to_english(obstacle.words[name]) for name in expected} == expected


@pytest.mark.parametrize(
    ("note", "code"),
    [
        ('failed to create ResourceClaim: resourceclaimtemplates "single" not found', "ClaimTemplateMissing"),
        ("failed to create ResourceClaim: quota is exceeded", "DeviceClaimNotMade"),
    ],
)
def test_the_controllers_failure_is_an_obstacle_until_a_scheduler_has_tried_the_pod(note: str, code: str) -> None:
    event = Evidence("event", "e", NOW, "resource_claim", words=f"FailedResourceClaimCreation: {note}")
    assert find_code(events=[event]) == code
    assert find_code(events=[event], words="0/3 nodes are available: 3 Insufficient cpu.") == ""
    assert find_code(events=[event._replace(words=f"FailedCreate: {note}")]) == ""


def test_claims_are_those_that_the_pod_names_or_that_were_made_for_it() -> None:
    own_claim = a_claim(name="job-0-gpu-x")
    second = {"name": "nic", "resourceClaimName": "shared"}
    facts = build_facts(
        own_claim, a_claim(), a_pod(BY_TEMPLATE, claim_name="job-0-gpu-x"), claims=(BY_TEMPLATE, second)
    )
    assert [name for name, _ in iterate_claims(facts)] == ["job-0-gpu-x", "shared"]
    assert list(iterate_claims(build_facts(own_claim, claims=(BY_TEMPLATE,)))) == []
    assert list(iterate_claims(build_facts(pod=None))) == []


def test_one_obstacle_of_a_code_is_enough_and_the_schedulers_words_come_first() -> None:
    words = 'resourceclaim "lost" not found'
    step = check(OTHER, claims=(BY_NAME,), words=words)
    assert step
    assert [(obstacle.code, obstacle.words["claim"]) for obstacle in step.obstacles] == [("DeviceClaimMissing", "lost")]
