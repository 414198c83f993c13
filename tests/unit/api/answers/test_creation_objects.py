"""Simulated pods are created first: LimitRanges and quotas decide, as far as the API may read them."""

from datetime import UTC, datetime
from typing import Any

from runtime.kubernetes.errors import KubeApiError
from schemas.events import DeviceKind
from schemas.json_types import Json
from tests.support.builders.node_states import a_node_state
from tests.support.fakes.objects import FakeObjects
from tests.support.harness.api_app import Caller

NOW = datetime.now(UTC).replace(microsecond=0)
NAMESPACE = "/api/v1/namespaces/llm"
GPUS = "requests.nvidia.com/gpu"
KIND = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)


def a_cluster(**tables: list[Json]) -> FakeObjects:
    """A node with a free device; ``tables``: objects of the namespace by their plural."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "10"}
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": amounts, "capacity": amounts}}
    lists = {f"{NAMESPACE}/{plural}": {"items": items, "metadata": {}} for plural, items in tables.items()}
    return FakeObjects({"/api/v1/nodes": {"items": [node], "metadata": {}}, **lists})


def a_quota(hard: dict[str, str], used: dict[str, str]) -> Json:
    metadata = {"name": "team", "namespace": "llm"}
    return {"metadata": metadata, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}}


def a_limit_range(**item: Any) -> Json:
    return {"metadata": {"name": "bounds", "namespace": "llm"}, "spec": {"limits": [{"type": "Container", **item}]}}


async def simulate(objects: FakeObjects, **metadata: str) -> Json:
    caller = Caller(objects=objects)
    state = a_node_state("n1", 1, kinds=[KIND], memory_used_mib=[0], slots_used=[0], observed_at=NOW)
    caller.app.state.devices.take(state, NOW)
    caller.app.state.devices.is_caught_up = True
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "llm", "name": "new", **metadata},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }  # fmt: skip
    answer = await caller.client.post("/api/v1/simulate", json=pod)
    assert answer.status_code == 200, answer.text
    simulation: Json = answer.json()
    return simulation


def list_codes(simulation: Json) -> list[str]:
    return [note["code"] for note in simulation["notes"]]


async def test_a_quota_that_is_used_up_refuses_the_pod() -> None:
    simulation = await simulate(a_cluster(resourcequotas=[a_quota({GPUS: "2"}, {GPUS: "2"})]))
    assert simulation["state"] == "refused"
    assert simulation["diagnosis"]["obstacle"]["code"] == "QuotaRefusesPod"
    assert "quota team of namespace llm allows 2 nvidia.com/gpu, 2 of them are used" in simulation["sentence"]["en"]


async def test_a_quota_with_enough_left_lets_the_pod_pass() -> None:
    simulation = await simulate(a_cluster(resourcequotas=[a_quota({GPUS: "3"}, {GPUS: "2"})]))
    assert (simulation["state"], simulation["node"]) == ("fits", "n1")
    assert simulation["suggestions"]["not_known"] == []


async def test_a_copy_of_a_stored_pod_counts_in_the_quota_already() -> None:
    objects = a_cluster(resourcequotas=[a_quota({GPUS: "2"}, {GPUS: "2"})])
    simulation = await simulate(objects, uid="u-1", creationTimestamp="2026-11-24T08:00:00Z")
    assert simulation["state"] == "fits"


async def test_a_limit_range_gives_amounts_and_bounds() -> None:
    simulation = await simulate(a_cluster(limitranges=[a_limit_range(defaultRequest={"cpu": "16"})]))
    assert simulation["state"] == "refused"
    assert [group["code"] for group in simulation["filtered"]] == ["ResourceNeverEnough"]
    assert "LimitRangeAdds" in list_codes(simulation)
    bounded = await simulate(a_cluster(limitranges=[a_limit_range(max={"nvidia.com/gpumem": "500"})]))
    assert bounded["diagnosis"]["obstacle"]["code"] == "LimitRangeRefusesPod"


async def test_refused_rights_are_named() -> None:
    objects = a_cluster()
    for plural in ("resourcequotas", "limitranges"):
        objects.refused[f"{NAMESPACE}/{plural}"] = KubeApiError(403, f"{plural} is forbidden")
    simulation = await simulate(objects)
    (text,) = (note["text"]["en"] for note in simulation["notes"] if note["code"] == "CreationUnread")
    assert "The right is to list resourcequotas, limitranges." in text
    assert [entry["en"] for entry in simulation["suggestions"]["not_known"]] == [
        "Quotas of namespaces are in no record: a change may still exceed one."
    ]


async def test_the_answer_names_that_use_of_hami_s_quotas_is_unknown() -> None:
    simulation = await simulate(a_cluster(resourcequotas=[a_quota({"limits.nvidia.com/gpumem": "500"}, {})]))
    assert ["parts of devices" in entry["en"] for entry in simulation["suggestions"]["not_known"]] == [True]


async def test_without_an_api_server_quotas_are_unknown_and_no_right_would_help() -> None:
    simulation = await simulate(FakeObjects(is_connected=False))
    assert "CreationUnread" not in list_codes(simulation)
    assert len(simulation["suggestions"]["not_known"]) == 1
