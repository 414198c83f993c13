"""What the scheduler needs of a cluster: a handful of calls, and to be told what changed.

`FileCluster` plays it from a YAML file; a Kubernetes client implements the same with watches and an API server.
Objects are Kubernetes objects as decoded JSON.
"""

from collections.abc import Mapping
from typing import Any, Protocol

Object = Mapping[str, Any]


class ApiError(Exception):
    """The API server refused or failed. `status` is the HTTP status; the text is what goes into HAMi's answers."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_missing(self) -> bool:
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """The object has changed since it was read: read it again, then retry."""
        return self.status == 409


def missing(kind: str, name: str) -> ApiError:
    """What an API server says about an object that is not there."""
    return ApiError(404, f'{kind} "{name}" not found')


class ClusterApi(Protocol):
    """Reads and writes. Every coroutine may raise `ApiError`."""

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
        self, namespace: str, name: str, annotations: Mapping[str, str | None], labels: Mapping[str, str] | None = None
    ) -> None:
        """Merge into the pod's annotations and labels; None removes an annotation."""

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
