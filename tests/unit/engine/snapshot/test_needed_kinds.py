"""Collections that a diagnosis needs, with their paths in the Kubernetes API.

Webhooks are read only for a pod that lacks what they write.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from engine.snapshot import kinds, needed_kinds
from engine.snapshot.needed_kinds import WEBHOOKS, GroupVersions, ListedKind, list_webhooks, parse_versions

QUEUE = {"kueue.x-k8s.io/queue-name": "night"}


def a_pod(scheduler: str, labels: dict[str, str] | None = None, **limits: str) -> dict[str, Any]:
    containers = [
        {"name": "c", "resources": {"limits": {f"nvidia.com/{name}": value for name, value in limits.items()}}}
    ]
    return {"metadata": {"labels": labels or {}}, "spec": {"schedulerName": scheduler, "containers": containers}}


@pytest.mark.parametrize(
    "pod", [a_pod("default-scheduler", gpu="1", gpumem="3000"), a_pod("", gpumem="3000"), a_pod("volcano", QUEUE)]
)
def test_webhooks_are_read_for_a_pod_that_lacks_what_they_write(pod: dict[str, Any]) -> None:
    assert list_webhooks(pod) == list(WEBHOOKS)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("hami-scheduler", gpu="1", gpumem="3000"),
        a_pod("volcano", {"kueue.x-k8s.io/managed": "true"}),
        a_pod("default-scheduler", gpu="1"),
        a_pod("default-scheduler", {**QUEUE, "kueue.x-k8s.io/managed": "true"}),
    ],
)
def test_webhooks_are_not_read_for_other_pods(pod: dict[str, Any]) -> None:
    assert list_webhooks(pod) == []


NO_GROUPS = GroupVersions({})
DEVICE_GROUP = GroupVersions({"resource.k8s.io": ("v1", "v1beta2")})
DEVICE_PATHS = [
    f"/apis/resource.k8s.io/v1/{plural}"
    for plural in ("resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses")
]
STORAGE_PATHS = [
    "/api/v1/persistentvolumes",
    *(
        f"/apis/storage.k8s.io/v1/{plural}"
        for plural in ("storageclasses", "csinodes", "csidrivers", "volumeattachments")
    ),
]


def list_paths(listed: Iterable[ListedKind]) -> list[str]:
    return [entry.path for entry in listed]


def test_versions_of_a_group_begin_with_the_preferred_one() -> None:
    group = {
        "name": "resource.k8s.io",
        "versions": [{"version": "v1beta2"}, {"version": "v1"}],
        "preferredVersion": {"version": "v1"},
    }
    versions = parse_versions({"kind": "APIGroupList", "groups": [group]})
    assert versions.find_preferred("resource.k8s.io") == "v1"
    assert versions.list_others("resource.k8s.io") == ("v1beta2",)
    assert (versions.find_preferred("apps"), versions.list_others("apps")) == ("", ())


def test_the_lists_of_a_namespace_are_below_its_path() -> None:
    assert list_paths(needed_kinds.list_own("a b")) == [
        "/api/v1/namespaces/a%20b/events",
        "/api/v1/namespaces/a%20b/persistentvolumeclaims",
        "/api/v1/namespaces/a%20b/resourcequotas",
    ]
    assert list_paths(needed_kinds.list_creation("a")) == [
        "/api/v1/namespaces/a/resourcequotas",
        "/api/v1/namespaces/a/limitranges",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/node.k8s.io/v1/runtimeclasses",
    ]


CLAIM_VOLUME = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
EPHEMERAL_VOLUME = {"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}
RULE: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": []}
CLASS_RESOURCE = {"containers": [{"resources": {"limits": {"example.com/gpu": "1"}}}]}


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        ({}, []),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, []),
        ({"volumes": [CLAIM_VOLUME]}, STORAGE_PATHS),
        ({"volumes": [EPHEMERAL_VOLUME]}, STORAGE_PATHS),
        ({"affinity": {"nodeAffinity": RULE}}, []),
        ({"affinity": {"podAffinity": RULE}}, ["/api/v1/namespaces"]),
        ({"affinity": {"podAntiAffinity": RULE}}, ["/api/v1/namespaces"]),
        ({"resourceClaims": [{"name": "gpu"}]}, DEVICE_PATHS),
        (CLASS_RESOURCE, DEVICE_PATHS[-1:]),
        ({"containers": [{"resources": {"limits": {"cpu": "1"}}}]}, []),
        ({"initContainers": CLASS_RESOURCE["containers"]}, DEVICE_PATHS[-1:]),
    ],
)
def test_a_verdict_needs_nodes_pods_and_what_the_pod_names(spec: dict[str, Any], more: list[str]) -> None:
    assert list_paths(needed_kinds.list_for_verdict(spec, DEVICE_GROUP)) == ["/api/v1/nodes", "/api/v1/pods", *more]


def test_a_cluster_without_the_group_has_no_claims_of_devices() -> None:
    assert list(needed_kinds.list_devices(NO_GROUPS)) == []
    assert list_paths(needed_kinds.list_for_verdict({"resourceClaims": [{"name": "gpu"}]}, NO_GROUPS)) == [
        "/api/v1/nodes",
        "/api/v1/pods",
    ]


@pytest.mark.parametrize(
    ("resource", "class_spec", "is_needed"),
    [
        ("example.com/gpu", {"extendedResourceName": "example.com/gpu"}, True),
        ("example.com/gpu", {"extendedResourceName": "example.com/npu"}, False),
        ("example.com/gpu", {}, False),
        # The API reference of DeviceClass: any class can be requested as this resource.
        ("deviceclass.resource.kubernetes.io/gpu.example.com", {}, True),
    ],
)
def test_devices_are_needed_for_a_resource_that_a_class_serves(
    resource: str, class_spec: dict[str, str], is_needed: bool
) -> None:
    spec = {"containers": [{"resources": {"limits": {resource: "1"}}}]}
    listed = needed_kinds.list_devices_of_resources(spec, [{"spec": class_spec}], DEVICE_GROUP)
    assert list_paths(listed) == (DEVICE_PATHS if is_needed else [])
    with_claims = {**spec, "resourceClaims": [{"name": "gpu"}]}
    assert needed_kinds.list_devices_of_resources(with_claims, [{"spec": class_spec}], DEVICE_GROUP) == []


def test_queues_of_installed_systems_are_listed_by_namespace_where_they_belong_to_one() -> None:
    versions = GroupVersions({"kueue.x-k8s.io": ("v1beta1",), "scheduling.run.ai": ("v2alpha2", "v2")})
    assert list_paths(needed_kinds.list_queues("a", versions)) == [
        "/apis/kueue.x-k8s.io/v1beta1/namespaces/a/workloads",
        "/apis/kueue.x-k8s.io/v1beta1/namespaces/a/localqueues",
        "/apis/kueue.x-k8s.io/v1beta1/clusterqueues",
        "/apis/kueue.x-k8s.io/v1beta1/resourceflavors",
        "/apis/scheduling.run.ai/v2alpha2/namespaces/a/podgroups",
        "/apis/scheduling.run.ai/v2alpha2/queues",
    ]
    assert list_paths(needed_kinds.list_queues("", versions))[0] == "/apis/kueue.x-k8s.io/v1beta1/workloads"


def test_groups_of_pods_of_kubernetes_are_in_another_version_than_priority_classes() -> None:
    versions = GroupVersions({"scheduling.k8s.io": ("v1", "v1alpha2")})
    assert list(needed_kinds.list_queues("a", versions)) == [
        ListedKind(kinds.POD_GROUP, "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups"),
        ListedKind(kinds.WORKLOAD, "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/workloads"),
    ]
    assert list(needed_kinds.list_queues("a", GroupVersions({"scheduling.k8s.io": ("v1",)}))) == []


def test_a_simulation_lists_everything_that_decides_about_pods() -> None:
    versions = GroupVersions({"resource.k8s.io": ("v1",), "scheduling.koordinator.sh": ("v1alpha1",)})
    assert list_paths(needed_kinds.list_simulated(versions)) == [
        "/api/v1/nodes", "/api/v1/pods", *STORAGE_PATHS, "/api/v1/persistentvolumeclaims", "/api/v1/namespaces",
        "/api/v1/resourcequotas", "/api/v1/limitranges", "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/node.k8s.io/v1/runtimeclasses", "/apis/policy/v1/poddisruptionbudgets", *DEVICE_PATHS,
        "/apis/scheduling.koordinator.sh/v1alpha1/devices",
    ]  # fmt: skip
    assert needed_kinds.list_shared_devices(NO_GROUPS) == []


def test_one_object_is_listed_by_its_name() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}
    assert needed_kinds.list_named(owner, "a") == ListedKind(
        "Job.batch", "/apis/batch/v1/namespaces/a/jobs", {"fieldSelector": "metadata.name=train"}
    )
    assert needed_kinds.list_node("n1") == ListedKind("Node", "/api/v1/nodes", {"fieldSelector": "metadata.name=n1"})


@pytest.mark.parametrize(
    ("version", "kind", "namespace", "path"),
    [
        ("v1", "ReplicationController", "a", "/api/v1/namespaces/a/replicationcontrollers"),
        ("apps/v1", "ReplicaSet", "", "/apis/apps/v1/replicasets"),
        ("x.io/v1", "A/B", "a/b", "/apis/x.io/v1/namespaces/a%2Fb/a%2Fbs"),
    ],
)
def test_objects_of_a_kind_are_below_their_version(version: str, kind: str, namespace: str, path: str) -> None:
    assert needed_kinds.build_collection_path(version, kind, namespace) == path
