"""Queues and groups of other systems on a control plane: their kinds, without the controllers that write on them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import httpx

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.control_plane.objects import create
from tests.support.waiting import eventually

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class CustomKind(NamedTuple):
    """A kind that a system adds to the cluster."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool = True

    def build_path(self, namespace: str) -> str:
        """Build the path of its objects."""
        within = f"namespaces/{namespace}/" if self.is_namespaced else ""
        return f"/apis/{self.group}/{self.version}/{within}{self.plural}"


WORKLOADS: Final = CustomKind("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
LOCAL_QUEUES: Final = CustomKind("kueue.x-k8s.io", "v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUES: Final = CustomKind("kueue.x-k8s.io", "v1beta2", "ClusterQueue", "clusterqueues", is_namespaced=False)
VOLCANO_JOBS: Final = CustomKind("batch.volcano.sh", "v1alpha1", "Job", "jobs")
VOLCANO_GROUPS: Final = CustomKind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
VOLCANO_QUEUES: Final = CustomKind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", is_namespaced=False)
KAI_GROUPS: Final = CustomKind("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups")
SIBLING_GROUPS: Final = CustomKind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
DEVICES: Final = CustomKind("scheduling.koordinator.sh", "v1alpha1", "Device", "devices", is_namespaced=False)
KINDS: Final = (
    WORKLOADS, LOCAL_QUEUES, CLUSTER_QUEUES, VOLCANO_JOBS, VOLCANO_GROUPS, VOLCANO_QUEUES, KAI_GROUPS, SIBLING_GROUPS,
    DEVICES,
)  # fmt: skip


@contextmanager
def created_kinds(cluster: ControlPlane, kinds: tuple[CustomKind, ...] = KINDS) -> Iterator[None]:
    """The kinds on the cluster, with any fields; they and their objects go when the block ends."""
    paths = [f"{_DEFINITIONS}/{kind.plural}.{kind.group}" for kind in kinds]
    with cluster.open_client() as client:
        try:
            for kind in kinds:
                create(client, _DEFINITIONS, _build_definition(kind))
            for kind in kinds:
                path = kind.build_path("default")
                eventually(lambda path=path: client.get(path).status_code == httpx.codes.OK, f"no {path}")  # type: ignore[misc]
            yield
        finally:
            for path in paths:
                client.delete(path)
            # The API server deletes the objects of a kind before the kind; the next test creates the same kinds.
            for path in paths:
                eventually(lambda path=path: client.get(path).status_code == httpx.codes.NOT_FOUND, f"{path} remains")  # type: ignore[misc]


def create_custom(client: httpx.Client, kind: CustomKind, namespace: str, body: Json) -> Json:
    """Create an object of the kind."""
    named = {"apiVersion": f"{kind.group}/{kind.version}", "kind": kind.kind, **body}
    return create(client, kind.build_path(namespace), named)


def _build_definition(kind: CustomKind) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    # The API server lets nobody define kinds of these groups who does not name a review.
    annotations = {"api-approved.kubernetes.io": "unapproved, for a test"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}", "annotations": annotations},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()},
            "versions": [version],
        },
    }
