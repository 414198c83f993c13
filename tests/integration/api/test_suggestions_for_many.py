"""Changes that would let most of the waiting pods in, on node states from a real topic and pods of a real index."""

from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.waiting import derive_wait
from schemas.events import AttemptSummarized, DeviceKind, Owner, PodDescription, Request
from tests.support.builders.node_states import a_node_state
from tests.support.harness.api_process import Served
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import until

CLUSTER = "api-admission"
ROOT = f"/api/v1/clusters/{CLUSTER}"
KIND = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)
JOB = PodDescription(owners=[Owner(kind="Job", name="train")])
NODES = ["m-one", "m-two"]


def a_waiting_attempt(pod: str, **fields: Any) -> AttemptSummarized:
    """An attempt that both nodes refused two minutes ago; it asks for most of a device."""
    attempt = an_attempt(pod, started_at=NOW - timedelta(minutes=2), nodes=NODES, reason="CardUnhealthy")
    common = {"cluster": CLUSTER, "attempt_id": pod.encode().hex()[-32:].rjust(32, "0"), "constraints": {}}
    request = Request(container="main", vendor="NVIDIA", count=1, memory_mib=8_000)
    attempt = attempt.model_copy(update=common | {"requests": [request], "first_judged_at": NOW - timedelta(hours=1)})
    return (changed := attempt.model_copy(update=fields)).model_copy(update={"wait": derive_wait(changed)})


@pytest.fixture(scope="module")
def filled(filling: Filling, api: Served) -> Served:
    """Two nodes of two devices, whose devices are all cordoned but one that is unhealthy."""
    common = {"cluster": CLUSTER, "revision": 1, "kinds": [KIND], "observed_at": NOW - timedelta(minutes=5)}
    first_state = a_node_state("m-one", 2, cordoned=[True, True], **common)
    second_state = a_node_state("m-two", 2, cordoned=[True, False], healthy=[True, False], **common)
    filling.index(
        *(a_waiting_attempt(f"llm/train-{number}", description=JOB) for number in range(3)),
        a_waiting_attempt("other/bound", constraints={"nvidia.com/use-gputype": "H100"}),
    )
    filling.index_states(first_state, second_state)
    filling.publish_states(first_state, second_state)
    assert until(lambda: bool(api.get(f"{ROOT}/suggestions").json()["items"]))
    return api


def test_the_change_that_lets_the_largest_number_of_pods_in_comes_first(filled: Served) -> None:
    answer = filled.get(f"{ROOT}/suggestions").json()
    assert (answer["waiting"], answer["judged"], answer["fit"]) == (4, 4, 0)
    items = [(item["constraint"], item["where"], item["pods"], item["devices"]) for item in answer["items"]]
    assert items == [("cordon", "m-one", 2, 2), ("cordon", "m-two", 1, 1), ("health", "m-two", 1, 1)]
    first = answer["items"][0]
    assert first["sentence"]["en"] == "Uncordon the devices of m-one: then 2 of the 4 pods fit."
    assert first["workloads"] == [{"namespace": "llm", "workload": "Job/train", "pods": 2}]
    assert first["who_acts"] == "administrator"


def test_of_one_namespace_its_pods_alone_count(filled: Served) -> None:
    answer = filled.get(f"{ROOT}/suggestions", namespace="other").json()
    # No node has the type that it wants, whatever an administrator does.
    assert (answer["waiting"], answer["judged"], answer["items"]) == (1, 1, [])
    assert filled.get(f"{ROOT}/suggestions", namespace="nobody").json()["waiting"] == 0


def test_the_report_of_failures_has_the_first_of_them(filled: Served) -> None:
    report = filled.get(f"{ROOT}/reports/failures").json()
    assert (report["best_change"]["where"], report["best_change"]["pods"]) == ("m-one", 2)
    text = filled.get(f"{ROOT}/reports/failures", format="markdown").text
    assert "The one change that helps most: Uncordon the devices of m-one: then 2 of the 4 pods fit." in text


def test_a_wrong_parameter_and_an_unknown_cluster(filled: Served) -> None:
    assert filled.get(f"{ROOT}/suggestions", since="yesterday").status_code == 400
    unknown = filled.get("/api/v1/clusters/nowhere/suggestions").json()
    assert (unknown["waiting"], unknown["items"]) == (0, [])
    assert "devices of the cluster are not known" in str(unknown["not_known"])
