"""What the scheduler needs of a cluster: a handful of calls, and to be told what changed.

`FileCluster` plays it from a YAML file; `KubernetesCluster` does it with watches and an API server.
Objects are Kubernetes objects as decoded JSON.
"""

from collections.abc import Mapping
from typing import Any, Protocol

Object = Mapping[str, Any]


class ClusterApi(Protocol):
    """Reads and writes. Every coroutine may raise `kube.errors.KubeApiError`."""

    def problem(self) -> str:
        """Why nothing can be decided now: what is known may be old, or another scheduler decides; empty otherwise."""

    def known_node(self, name: str) -> Object | None:
        """The node as last seen, without asking the API server."""

    def known_pod(self, namespace: str, name: str) -> Object | None:
        """The pod as last seen, without asking the API server."""

    def offered(self, pod: Object) -> None:
        """kube-scheduler hands this pod over; an API server knows it already."""

    async def get_node(self, name: str) -> Object: ...

    async def get_pod(self, namespace: str, name: str) -> Object: ...

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        """Merge into the node's annotations; None removes one. A conflict unless the version is still the newest."""

    async def patch_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        annotations: Mapping[str, str | None],
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Merge into the annotations and labels of the pod with this UID; None removes an annotation."""

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Write the node into the pod."""


class Watcher(Protocol):
    """Who is told what changed, in the order it happened."""

    def node_changed(self, node: Object) -> None: ...

    def node_gone(self, name: str) -> None: ...

    def pod_changed(self, pod: Object) -> None: ...

    def pod_gone(self, uid: str) -> None: ...

    def quota_changed(self, quota: Object) -> None: ...

    def quota_gone(self, namespace: str, name: str) -> None: ...


def annotation(found: Object, key: str) -> str | None:
    """An annotation of a Kubernetes object; None where it is absent or no text."""
    metadata = found.get("metadata")
    said = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    value = said.get(key) if isinstance(said, Mapping) else None
    return value if isinstance(value, str) else None
