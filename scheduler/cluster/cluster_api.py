"""The scheduler's interface to a cluster: reads, writes, and notifications of changes.

`SimulatedCluster` simulates it from a YAML file; `KubernetesCluster` implements it with watches and an API server.
Objects are Kubernetes objects as decoded JSON.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from engine.hami.go_values import to_mapping

Object = Mapping[str, Any]


class NamespacedName(NamedTuple):
    """A pod's namespace and name."""

    namespace: str
    name: str


class PodVersion(NamedTuple):
    """One pod as it was seen. A write that names it meets a conflict (409) where the pod has changed since.

    resource_version: empty for any.
    """

    key: NamespacedName
    uid: str
    resource_version: str


class ClusterApi(Protocol):
    """Reads and writes. Every coroutine may raise `runtime.kubernetes.errors.KubeApiError`."""

    def find_problem(self) -> str:
        """Find why nothing can be decided now (outdated watches, or another scheduler leads); empty if it can."""

    def get_term(self) -> int:
        """Return a number that differs from an earlier one where another scheduler may have led in between."""

    def get_node_seen(self, name: str) -> Object | None:
        """Return the node as last seen, without asking the API server."""

    def get_pod_seen(self, namespace: str, name: str) -> Object | None:
        """Return the pod as last seen, without asking the API server."""

    def note_offered(self, pod: Object) -> None:
        """Note a pod that kube-scheduler sent. A cluster with an API server knows it already."""

    async def get_node(self, name: str) -> Object: ...

    async def get_pod(self, namespace: str, name: str) -> Object: ...

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        """Merge into the node's annotations; None removes one. A conflict unless the version is still the newest."""

    async def patch_pod(
        self, pod: PodVersion, annotations: Mapping[str, str | None], labels: Mapping[str, str] | None = None
    ) -> Object:
        """Merge into the annotations and labels; None removes an annotation. Returns the pod as it is then."""

    async def bind(self, pod: PodVersion, node: str) -> None:
        """Write the node into the pod."""


class Watcher(Protocol):
    """Receiver of every change, in the order of the changes."""

    def on_node(self, node: Object) -> None: ...

    def on_node_deleted(self, name: str) -> None: ...

    def on_pod(self, pod: Object) -> None: ...

    def on_pod_deleted(self, uid: str) -> None: ...

    def on_quota(self, quota: Object) -> None: ...

    def on_quota_deleted(self, namespace: str, name: str) -> None: ...


def get_version(pod: Object) -> PodVersion:
    """Return the version of the pod as it was seen."""
    metadata = pod["metadata"]
    key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
    return PodVersion(key, str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or ""))


def get_bound_node(pod: Object) -> str:
    """Return the node that the pod is bound to; empty while it is not."""
    return str(to_mapping(pod.get("spec")).get("nodeName") or "")


def get_annotation(obj: Object, key: str) -> str | None:
    """Return the value of an annotation of a Kubernetes object; None where it is absent or not a string."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    value = annotations.get(key) if isinstance(annotations, Mapping) else None
    return value if isinstance(value, str) else None
