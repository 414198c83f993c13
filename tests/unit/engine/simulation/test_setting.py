"""Notes: what admission changes, amounts that do not count, words that nobody reads, what the file leaves open."""

from typing import Any

import pytest

from engine.hami.releases import HamiRelease, observe_release, parse_release
from tests.support.builders.cluster import a_node
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, list_notes, simulate


def with_annotations(workload: dict[str, Any], **annotations: str) -> dict[str, Any]:
    keys = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    keys = {key.replace("hami/", "hami.io/").replace("nvidia/", "nvidia.com/"): text for key, text in keys.items()}
    workload["metadata"]["annotations"] = keys
    return workload


def test_the_webhooks_additions_are_made_and_named() -> None:
    answer = simulate(a_gpu_pod(gpumem=7000, gpucores=30), a_gpu_node())
    assert answer["node"] == "n1"
    assert list_notes(answer)["WebhookAdds"] == "HAMi's webhook adds nvidia.com/gpu: 1 to container c."
    [device] = answer["devices"]
    assert (device["memory_mib"], device["cores_percent"]) == (7000, 30)


def test_a_complete_device_gets_all_cores_from_the_webhook() -> None:
    notes = list_notes(simulate(a_gpu_pod(gpu=1), a_gpu_node()))
    assert notes["WebhookAdds"] == "HAMi's webhook adds nvidia.com/gpucores: 100 to container c."


@pytest.mark.parametrize(
    ("value", "instead"),
    [("8Gi", "8192"), ("1500.5", "1501"), ("20G", "19073"), ("lots", "a number such as 8192"), ("-4", "a number such")],
)
def test_the_amount_to_write_is_the_one_that_was_meant(value: str, instead: str) -> None:
    note = list_notes(simulate(a_gpu_pod(gpu=1, gpumem=value), a_gpu_node()))["MemoryNotCounted"]
    assert f"Write nvidia.com/gpumem: {instead}" in note


def test_an_amount_with_a_suffix_that_is_dropped_names_what_to_write() -> None:
    answer = simulate(a_gpu_pod(gpu=1, gpumem="8Gi"), a_gpu_node())
    assert "drops the container's whole request" in list_notes(answer)["MemoryNotCounted"]
    assert "Write nvidia.com/gpumem: 8192" in list_notes(answer)["MemoryNotCounted"]
    # It would start without a device: that is no fit.
    assert (answer["state"], answer["node"]) == ("refused", None)
    assert answer["diagnosis"]["obstacle"]["code"] == "RequestNotRead"
    assert "nvidia.com/gpumem: 8Gi" in answer["sentence"]["en"]


@pytest.mark.parametrize(("memory_mib", "counts"), [(2**31 - 1, True), (2**31, False)])
def test_memory_counts_up_to_the_largest_number_of_32_bits(memory_mib: int, counts: bool) -> None:
    notes = list_notes(simulate(a_gpu_pod(gpu=1, gpumem=memory_mib), a_gpu_node()))
    assert ("MemoryNotCounted" not in notes) is counts


def test_amounts_in_requests_only_and_zero_are_named() -> None:
    pod = a_gpu_pod(gpumem=0, gpu=1)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"nvidia.com/gpucores": 10}
    notes = list_notes(simulate(pod, a_gpu_node()))
    assert "nvidia.com/gpucores under requests only" in notes["RequestsOnly"]
    assert "nvidia.com/gpumem of container c is 0" in notes["MemoryZero"]


def test_an_annotation_on_the_workload_has_no_effect_and_moves_into_the_template() -> None:
    template = {"spec": a_gpu_pod()["spec"]}
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    answer = simulate(with_annotations(job, hami__gpu_scheduler_policy="binpack"), a_gpu_node())
    assert "stands on Job/j itself and has no effect" in list_notes(answer)["AnnotationOnWorkload"]
    assert (answer["device_policy"], answer["policy_annotation"]) == ("spread", "")


@pytest.mark.parametrize(
    ("annotation", "value", "code", "words"),
    [
        ("nvidia__use_gpu_type", "A10", "UnknownAnnotation", "nearest that HAMi reads is nvidia.com/use-gputype"),
        ("hami__gpu_schedule_policy", "x", "UnknownAnnotation", "HAMi reads is hami.io/gpu-scheduler-policy"),
        ("hami__gpu_scheduler_policy", "bin-pack", "UnknownPolicy", "there are binpack, spread"),
        ("nvidia__use_gputype", "H200", "UnknownModel", "there are NVIDIA A10"),
        ("nvidia__use_gpuuuid", "GPU-n1-7", "UnknownUuid", "the nearest is GPU-n1-0"),
    ],
)
def test_words_that_nothing_matches_name_the_nearest(annotation: str, value: str, code: str, words: str) -> None:
    pod = with_annotations(a_gpu_pod(gpu=1, gpumem=100), **{annotation: value})
    assert words in list_notes(simulate(pod, a_gpu_node()))[code]


def test_annotations_of_others_and_words_that_match_are_not_noted() -> None:
    pod = with_annotations(a_gpu_pod(gpu=1, gpumem=100), nvidia__use_gputype="a10", prometheus_scrape="true")
    assert list_notes(simulate(pod, a_gpu_node())).keys() == {"NoPods"}


def test_a_quota_under_an_uncounted_name_limits_nothing() -> None:
    hard = {"requests.nvidia.com/gpumemory": 1, "limits.nvidia.com/gpumem": 9000, "requests.nvidia.com/gpu": 4}
    quota = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}}
    answer = simulate(a_gpu_pod(gpu=1, gpumem=100), a_gpu_node(), quota)
    assert [note["code"] for note in answer["notes"]].count("QuotaName") == 1
    assert "HAMi counts limits.nvidia.com/gpumem" in list_notes(answer)["QuotaName"]


def test_a_handshake_that_hami_has_deleted_decides_by_release() -> None:
    node = a_gpu_node()
    node["metadata"]["annotations"]["hami.io/node-handshake"] = "Deleted_2026-05-07 09:12:44"
    answer = simulate(a_gpu_pod(gpu=1, gpumem=100), node)
    assert (answer["node"], "before v2.9" in list_notes(answer)["DeletedHandshake"]) == ("n1", True)
    older = simulate(a_gpu_pod(gpu=1, gpumem=100), node, release=HamiRelease(2, 8))
    assert (older["node"], older["diagnosis"]["obstacle"]["code"]) == (None, "node unregistered")


def test_the_release_is_observed_by_the_schedulers_image() -> None:
    pod = {"spec": {"containers": [{"image": "docker.io/library/nginx:1.27"}, {"image": "projecthami/hami:v2.8.1"}]}}
    assert observe_release([pod]) == HamiRelease(2, 8)
    assert (parse_release("2.10"), parse_release("new")) == (HamiRelease(2, 10), None)
    assert HamiRelease(2, 9) < HamiRelease(2, 10)


def test_amounts_that_a_node_does_not_name_are_assumed_and_noted_where_they_matter() -> None:
    node = a_gpu_node()
    for amounts in node["status"].values():
        del amounts["cpu"]
    pod = a_gpu_pod(gpu=1, gpumem=100)
    assert "AmountsAssumed" not in list_notes(simulate(pod, node))
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "64"}
    answer = simulate(pod, node)
    assert (answer["node"], "names no amount on n1" in list_notes(answer)["AmountsAssumed"]) == ("n1", True)


def test_a_pod_of_another_scheduler_is_left_alone() -> None:
    pod = a_gpu_pod(gpu=1)
    pod["spec"]["schedulerName"] = "volcano"
    answer = simulate(pod, a_gpu_node(), a_node("n2"))
    assert (answer["node"], answer["devices"]) == ("n1", [])
    assert "volcano" in list_notes(answer)["ForeignScheduler"]
