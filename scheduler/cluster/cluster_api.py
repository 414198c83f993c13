"""What the scheduler needs of a cluster: reads, writes, and notifications of changes.

`FileCluster` simulates it from a YAML file; `KubernetesCluster` implements it with watches and an API server.
Objects are Kubernetes objects as decoded JSON.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from engine.hami.json_values import to_mapping

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

    def problem(self) -> str:
        """Why nothing can be decided now (outdated watches, or another scheduler leads); empty if it can."""

    def term(self) -> int:
        """Differs from an earlier answer where another scheduler may have led in between."""

    def known_node(self, name: str) -> Object | None:
        """The node as last seen, without asking the API server."""

    def known_pod(self, namespace: str, name: str) -> Object | None:
        """The pod as last seen, without asking the API server."""

    def offered(self, pod: Object) -> None:
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
    """Is called for every change, in the order of the changes."""

    def node_changed(self, node: Object) -> None: ...

    def node_gone(self, name: str) -> None: ...

    def pod_changed(self, pod: Object) -> None: ...

    def pod_gone(self, uid: str) -> None: ...

    def quota_changed(self, quota: Object) -> None: ...

    def quota_gone(self, namespace: str, name: str) -> None: ...


def version_of(pod: Object) -> PodVersion:
    """The pod as it was seen."""
    about = pod["metadata"]
    key = NamespacedName(about.get("namespace", ""), about["name"])
    return PodVersion(key, str(about.get("uid") or ""), str(about.get("resourceVersion") or ""))


def bound_node(pod: Object) -> str:
    """The node that the pod is bound to; empty while it is not."""
    return str(to_mapping(pod.get("spec")).get("nodeName") or "")


def annotation(found: Object, key: str) -> str | None:
    """The value of an annotation of a Kubernetes object; None where it is absent or not a string."""
    metadata = found.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    value = annotations.get(key) if isinstance(annotations, Mapping) else None
    return value if isinstance(value, str) else None
