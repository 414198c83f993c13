"""Kinds of which the cluster has no object: an empty list proves it, and a file without any leaves it open."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from engine.cases.simulating import simulate_on_case
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.builders import claims
from tests.support.builders.cluster import a_node, a_pod

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


def an_empty_list(version: str, kind: str, **metadata: str) -> Json:
    return {"apiVersion": version, "kind": f"{kind}List", "metadata": metadata, "items": []}


CLASSES = an_empty_list("storage.k8s.io/v1", "StorageClass")


def a_volume_claim(volume: str = "") -> Json:
    metadata = {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "volumeName": volume}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def a_volume() -> Json:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    source = {"nfs": {"server": "files", "path": "/"}, "claimRef": {"namespace": "default", "name": "data"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec | source}


def simulate(pod: Json, *objects: Json) -> Any:
    return simulate_on_case(collect_objects([a_node("n1"), *objects]), orjson.dumps(pod), "default", None, NOW)


def a_mounting_pod() -> Json:
    pod = a_pod(cpu="1")
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return pod


def test_a_bound_claim_needs_no_storage_class() -> None:
    assert simulate(a_mounting_pod(), a_volume_claim("pv"), a_volume())["state"] == "fits"


@pytest.mark.parametrize(
    ("listed", "state"),
    [
        ([], "open"),
        ([CLASSES], "refused"),
        # More pages follow.
        ([an_empty_list("storage.k8s.io/v1", "StorageClass", **{"continue": "token"})], "open"),
    ],
)
def test_a_claim_without_a_volume_needs_its_class(listed: list[Json], state: str) -> None:
    simulation = simulate(a_mounting_pod(), a_volume_claim(), a_volume(), *listed)
    assert simulation["state"] == state


@pytest.mark.parametrize("kind", ["PersistentVolumeClaim", "PersistentVolume"])
def test_an_empty_list_of_claims_or_volumes_proves_that_there_is_none(kind: str) -> None:
    others = {"PersistentVolumeClaim": a_volume(), "PersistentVolume": a_volume_claim("pv")}
    assert simulate(a_mounting_pod(), CLASSES, others[kind])["state"] == "open"
    assert simulate(a_mounting_pod(), CLASSES, others[kind], an_empty_list("v1", kind))["state"] == "refused"


def test_without_any_device_class_that_of_a_claim_is_assumed_unless_all_were_listed() -> None:
    pod = claims.a_pod_with("c0")
    objects = (claims.a_claim(), claims.a_slice(claims.a_device("gpu-0")))
    assumed = simulate(pod, *objects)
    assert (assumed["state"], [note["code"] for note in assumed["notes"]]) == ("fits", ["NoPods", "ClassesAssumed"])
    listed = simulate(pod, *objects, an_empty_list("resource.k8s.io/v1", "DeviceClass"))
    assert listed["diagnosis"]["obstacle"]["code"] == "DeviceClassMissing"


def test_a_list_by_name_or_namespace_proves_nothing_about_others() -> None:
    objects = collect_objects([an_empty_list("v1", "Pod"), an_empty_list("apps/v1", "ReplicaSet"), CLASSES])
    assert objects.listed == {"StorageClass.storage.k8s.io"}


def test_a_file_with_an_allocated_claim_needs_no_devices() -> None:
    pod = claims.a_pod_with("c0")
    status = claims.an_allocation("gpu-0", pods=["other"])
    assert simulate(pod, claims.a_claim(status=status))["state"] == "fits"
    # A second claim without devices needs them.
    both = claims.a_pod_with("c0", "c1")
    assert simulate(both, claims.a_claim(status=status), claims.a_claim(name="c1"))["state"] == "open"
