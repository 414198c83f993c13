"""Lists that an answer about a workload reads, by the paths of Kubernetes' API conventions."""

import pytest

from engine.cases.workload_lists import build_version, list_collections, list_family_kinds
from engine.cases.workloads import CaseWorkload
from engine.snapshot.needed_kinds import GroupVersions
from schemas.json_types import Json

VERSIONS = GroupVersions(
    {"batch": ("v1",), "apps": ("v1",), "ray.io": ("v1", "v1beta1"), "scheduling.x-k8s.io": ("v1alpha1",)}
)


def an_owner(kind: str, version: str, name: str = "train") -> Json:
    return {"apiVersion": version, "kind": kind, "name": name}


def list_paths(kind: str, *owners: Json) -> list[str]:
    entry = {"metadata": {"ownerReferences": list(owners)}}
    return [listed.path for listed in list_family_kinds(CaseWorkload(kind, "ml", "x"), entry, VERSIONS)]


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("Job.batch", "batch/v1"),
        ("RayJob.ray.io", "ray.io/v1"),
        ("ReplicationController", "v1"),
        # Of a group that the cluster does not have.
        ("Job.batch.volcano.sh", "batch.volcano.sh/"),
    ],
)
def test_the_version_of_a_kind_is_the_one_that_the_cluster_prefers(kind: str, version: str) -> None:
    assert build_version(kind, VERSIONS) == version


@pytest.mark.parametrize(
    ("word", "namespace", "paths"),
    [
        # Volcano's Job is not there.
        ("job", "ml", ["/apis/batch/v1/namespaces/ml/jobs"]),
        ("job", "", ["/apis/batch/v1/jobs"]),
        ("rc", "ml", ["/api/v1/namespaces/ml/replicationcontrollers"]),
        ("pg", "ml", ["/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ml/podgroups"]),
        ("vcjob", "ml", []),
        ("word", "ml", []),
    ],
)
def test_a_word_lists_the_kinds_that_the_cluster_has(word: str, namespace: str, paths: list[str]) -> None:
    assert [listed.path for listed in list_collections(word, namespace, VERSIONS)] == paths


@pytest.mark.parametrize(
    ("kind", "owner", "paths"),
    [
        # A group of pods that a Deployment owns: the Deployment, and the ReplicaSets between it and the pods.
        ("PodGroup.scheduling.x-k8s.io", an_owner("Deployment", "apps/v1"), ["deployments", "replicasets"]),
        ("PodGroup.scheduling.x-k8s.io", an_owner("RayCluster", "ray.io/v1"), ["rayclusters"]),
        # A workload's own owner makes no pods beside it.
        ("Job.batch", an_owner("Deployment", "apps/v1"), []),
        ("CronJob.batch", an_owner("Deployment", "apps/v1"), ["jobs"]),
    ],
)
def test_the_owner_of_a_group_and_what_it_makes_are_listed(kind: str, owner: Json, paths: list[str]) -> None:
    names = [path.rpartition("/")[2] for path in list_paths(kind, owner)]
    assert [name for name in names if name in ("deployments", "replicasets", "rayclusters", "jobs")] == paths


def test_the_owner_of_a_group_is_listed_by_its_name() -> None:
    entry = {"metadata": {"ownerReferences": [an_owner("Deployment", "apps/v1", "web")]}}
    listed = list_family_kinds(CaseWorkload("PodGroup.scheduling.x-k8s.io", "ml", "x"), entry, VERSIONS)
    queries = [dict(kind.query) for kind in listed if kind.path.endswith("/deployments")]
    assert queries == [{"fieldSelector": "metadata.name=web"}]
    assert "/api/v1/namespaces/ml/pods" in [kind.path for kind in listed]
