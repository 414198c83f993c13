"""Filters and claims together."""

from typing import Any

import pytest

from engine.claims.inventory import read_inventory
from engine.filters.judgement import JudgedOutcome, Judgement
from engine.judging import judge_pod
from engine.snapshot.fields import RejectedObject
from engine.snapshot.reading import read_snapshot
from tests.support.builders.cluster import a_node, a_pod

VERSION = "resource.k8s.io/v1"


def a_claiming_pod() -> dict[str, Any]:
    pod = a_pod("ask", cpu="1")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    return pod


def list_objects(device_node: str) -> list[dict[str, Any]]:
    """List two nodes, the slice of one device on one of them, its class, and a claim for one device."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1}}
    pool = {"name": device_node, "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": "gpu.example.com", "nodeName": device_node, "pool": pool, "devices": [{"name": "d0"}]}
    return [
        a_node("n1"),
        a_node("n2"),
        {"apiVersion": VERSION, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": slice_spec},
        {"apiVersion": VERSION, "kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}},
        {
            "apiVersion": VERSION,
            "kind": "ResourceClaim",
            "metadata": {"namespace": "default", "name": "gpu", "uid": "uid-gpu"},
            "spec": {"devices": {"requests": [request]}},
        },
    ]


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_claim_is_judged_after_the_other_filters(*, is_shared: bool) -> None:
    snapshot = read_snapshot(list_objects("n2"))
    inventory = read_inventory(snapshot) if is_shared else None
    judgement = judge_pod(snapshot, a_claiming_pod(), inventory=inventory, alone=True)
    assert isinstance(judgement, Judgement)
    assert judgement.outcome is JudgedOutcome.FITS
    assert judgement.fitting == ("n2",)
    assert judgement.refused["n1"].plugin == "DynamicResources"
    assert judgement.refused["n1"].reasons == ("cannot allocate all claims",)
    assert list(judgement.alone) == ["n1"]


def test_a_missing_claim_keeps_the_pod_from_the_queue() -> None:
    judgement = judge_pod(read_snapshot(list_objects("n2")[:-1]), a_claiming_pod())
    assert isinstance(judgement, Judgement)
    assert judgement.outcome is JudgedOutcome.GATED
    assert judgement.pre_enqueue[0].reasons == ('could not find ResourceClaim "default/gpu"',)


def test_a_pod_without_claims_needs_no_devices() -> None:
    judgement = judge_pod(read_snapshot([a_node("n1")]), a_pod(cpu="1"))
    assert isinstance(judgement, Judgement)
    assert judgement.fitting == ("n1",)
    assert "DynamicResources" in judgement.skipped


def test_a_malformed_pod_is_rejected() -> None:
    pod = a_claiming_pod()
    pod["spec"]["resourceClaims"] = "gpu"
    assert isinstance(judge_pod(read_snapshot([a_node("n1")]), pod), RejectedObject)
