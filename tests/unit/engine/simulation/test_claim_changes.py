"""Changes of claims that are tried: bounds that devices just miss, and classes of the same vendor.

Costs are the share of the bound that is given up, by hand: (80 - 40) / 80 = 0.5.
"""

from typing import Any

import pytest

from engine.filters.judgement import Judgement
from engine.simulation.change_trial import ChangeTrial
from engine.simulation.claim_changes import iterate_claim_trials, iterate_class_trials, list_refused_by
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodVerdict, judge_simulated
from schemas.json_types import Json
from tests.support.builders.claims import a_claim, a_class, a_device, a_pod_with, a_request, a_slice
from tests.support.builders.cluster import a_node, a_pod, a_taint
from tests.support.builders.simulations import NOW, build_described

MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"
SLOTS = "device.attributes['gpu.nvidia.com'].slots >= 8"


def judge(pod: Json, *objects: Json) -> tuple[Any, PodVerdict, Judgement]:
    cluster, setting = build_described(*objects), SimulationSetting(NOW)
    verdict = judge_simulated(cluster, pod, setting.identity, setting.policy, setting.now)
    assert verdict.judgement
    return cluster, verdict, verdict.judgement


def list_trials(pod: Json, *objects: Json) -> list[ChangeTrial]:
    return list(iterate_claim_trials(*judge(pod, *objects)))


def list_bounds(pod: Json, *objects: Json) -> list[tuple[str, str, float]]:
    """List the looser bounds: claim, new text, share that it gives up."""
    edits = [edit for trial in list_trials(pod, *objects) for edit in trial.edits if edit.constraint == "claim"]
    return [(edit.where, edit.after, round(edit.share, 4)) for edit in edits]


def test_the_bounds_are_those_of_devices_that_miss_them_the_nearest_first() -> None:
    devices = [a_device("a", "20Gi"), a_device("b", "40Gi"), a_device("c", "40Gi")]
    bounds = list_bounds(a_pod_with("c0"), a_node("n1"), a_slice(*devices), a_class(), a_claim(a_request(MEMORY)))
    assert bounds == [("c0", MEMORY.replace("80Gi", "40Gi"), 0.5), ("c0", MEMORY.replace("80Gi", "20Gi"), 0.75)]


@pytest.mark.parametrize(
    ("slots", "share"),
    [(6, 0.25), (4, 0.5), (0, 1.0), (-8, 1.0)],
)
def test_a_bound_without_a_unit_gives_up_its_share(slots: int, share: float) -> None:
    device = a_device("a", attributes={"slots": slots})
    objects = a_node("n1"), a_slice(device), a_class(), a_claim(a_request(SLOTS))
    assert list_bounds(a_pod_with("c0"), *objects) == [("c0", SLOTS.replace("8", str(slots)), share)]


def test_a_bound_of_zero_gives_up_half() -> None:
    expression = SLOTS.replace("8", "0")
    objects = a_node("n1"), a_slice(a_device("a", attributes={"slots": -1})), a_class(), a_claim(a_request(expression))
    assert [share for _, _, share in list_bounds(a_pod_with("c0"), *objects)] == [0.5]


@pytest.mark.parametrize(
    "expression",
    [
        SLOTS.replace(">=", "=="),  # no bound
        f"{SLOTS} && device.attributes['gpu.nvidia.com'].kind == 'b'",  # two parts fail
        SLOTS.replace(">= 8", ">= 8 && 8 > 0"),
    ],
    ids=["equal", "two parts", "another part"],
)
def test_only_a_single_bound_is_loosened(expression: str) -> None:
    device = a_device("a", attributes={"slots": 4, "kind": "a"})
    objects = a_node("n1"), a_slice(device), a_class(), a_claim(a_request(expression))
    bounds = list_bounds(a_pod_with("c0"), *objects)
    assert [text for _, text, _ in bounds] == ([SLOTS.replace("8", "4")] if "> 0" in expression else [])


def test_the_changed_claim_has_the_looser_bound_and_nothing_else() -> None:
    claim = a_claim(a_request(MEMORY, "true"))
    [trial, *_] = list_trials(a_pod_with("c0"), a_node("n1"), a_slice(a_device("a", "40Gi")), a_class(), claim)
    [changed] = trial.objects
    selectors = changed["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert [item["cel"]["expression"] for item in selectors] == [MEMORY.replace("80Gi", "40Gi"), "true"]
    assert changed["metadata"] == claim["metadata"]


def test_the_template_is_changed_where_the_claim_is_made_from_it() -> None:
    template = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"namespace": "default", "name": "made"}, "spec": {"spec": a_claim(a_request())["spec"]},
    }  # fmt: skip
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "made"}]
    cluster, verdict, _ = judge(pod, a_node("n1"), a_slice(a_device("a")), a_class(), a_class(name="gpus"), template)
    [trial] = iterate_class_trials(cluster, verdict)
    assert (trial.edits[0].where, trial.edits[0].after) == ("p1-gpus: r0", "gpus")
    [changed] = trial.objects
    assert (changed["kind"], changed["metadata"]["name"]) == ("ResourceClaimTemplate", "made")
    assert changed["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpus"


def test_no_claim_is_changed_where_a_taint_refuses_the_node_as_well() -> None:
    objects = a_slice(a_device("a", "40Gi")), a_class(), a_claim(a_request(MEMORY))
    assert list_trials(a_pod_with("c0"), a_node("n1", taints=[a_taint("pool")]), *objects) == []


def test_nodes_of_one_filter_are_those_that_no_other_refuses() -> None:
    nodes = a_node("n1"), a_node("n2", taints=[a_taint("pool")]), a_node("n3", cpu="1", taints=[a_taint("pool")])
    _, _, judgement = judge(a_pod(cpu="9"), *nodes)
    assert list_refused_by(judgement, {"NodeResourcesFit"}) == ["n1"]
    assert list_refused_by(judgement, {"TaintToleration", "NodeResourcesFit"}) == ["n1", "n2", "n3"]
    assert list_refused_by(judgement, {"NodeName"}) == []


def list_classes(current: str, *classes: Json) -> list[str]:
    claim = a_claim(a_request(device_class=current))
    cluster, verdict, _ = judge(a_pod_with("c0"), a_node("n1"), a_slice(a_device("a")), claim, *classes)
    return [trial.edits[0].after for trial in iterate_class_trials(cluster, verdict)]


def test_classes_of_the_same_driver_are_tried_by_the_similarity_of_their_names() -> None:
    driver = "device.driver == 'gpu.nvidia.com'"
    classes = [a_class(driver, name=name) for name in ("large-gpu", "zzz", "large-gpus")]
    assert list_classes("large-gpu", *classes) == ["large-gpus", "zzz"]


@pytest.mark.parametrize(
    ("other", "is_tried"),
    [
        ("mig.nvidia.com", True),  # the same vendor
        ("nvidia.com", True),  # the domain of the vendor by itself
        ("nvidia.org", False),
        ("rdma.mellanox.com", False),
        ("gpus.example.com", False),
    ],
)
def test_a_class_of_another_vendor_is_tried_only_for_a_similar_name(other: str, is_tried: bool) -> None:
    assert list_classes("vgpu-slice.nvidia.com", a_class(name=other)) == ([other] if is_tried else [])


def test_a_claim_that_a_controller_made_is_that_of_the_pods_status() -> None:
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "made"}]
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpus", "resourceClaimName": "p1-gpus-x7"}]
    claim = a_claim(a_request(device_class="gpu"), name="p1-gpus-x7")
    cluster, verdict, _ = judge(pod, a_node("n1"), a_slice(a_device("a")), claim, a_class(), a_class(name="gpus"))
    [trial] = iterate_class_trials(cluster, verdict)
    assert (trial.edits[0].where, trial.edits[0].after) == ("p1-gpus-x7: r0", "gpus")


def test_only_the_request_that_is_named_gets_the_class() -> None:
    claim = a_claim(a_request(name="a"), a_request(name="b"))
    cluster, verdict, _ = judge(
        a_pod_with("c0"), a_node("n1"), a_slice(a_device("a")), claim, a_class(), a_class(name="gpus")
    )
    changed = [trial.objects[0]["spec"]["devices"]["requests"] for trial in iterate_class_trials(cluster, verdict)]
    assert [[request["exactly"]["deviceClassName"] for request in requests] for requests in changed] == [
        ["gpus", "gpu"],
        ["gpu", "gpus"],
    ]
