"""The rights that answers need, as Kubernetes' Roles name them. Pure.

Resources of the group ``schedulerlog.io``, all with the subresource ``schedulerlog``: ``pods`` in their namespace,
``nodes``, and ``clusters`` for every cluster except the one that the API runs in.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from api.http.param_types import NO_NAMESPACE

GROUP: Final = "schedulerlog.io"
SUBRESOURCE: Final = "schedulerlog"


@dataclass(frozen=True, slots=True)
class ResourceRight:
    """Verb on one object, or on all objects of a namespace or of the cluster."""

    verb: Literal["get", "list"]
    resource: Literal["pods", "nodes", "clusters"]
    namespace: str = ""
    """Namespace; empty for all namespaces, or for a resource without namespaces."""
    name: str = ""

    def to_attributes(self) -> dict[str, Any]:
        """Build the part of a SubjectAccessReview's spec that names the right."""
        names = {"namespace": self.namespace, "name": self.name}
        return {
            "resourceAttributes": {
                "verb": self.verb,
                "group": GROUP,
                "version": "*",
                "resource": self.resource,
                "subresource": SUBRESOURCE,
                **{field: value for field, value in names.items() if value},
            }
        }

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        everywhere = " in all namespaces" if self.resource == "pods" and not where else ""
        return f"{self.verb} {self.resource}/{SUBRESOURCE}{name}{where}{everywhere}"


@dataclass(frozen=True, slots=True)
class PathRight:
    """Right to read a path that is about no object: metrics, the parts of readiness."""

    path: str

    def to_attributes(self) -> dict[str, Any]:
        """Build the part of a SubjectAccessReview's spec that names the right."""
        return {"nonResourceAttributes": {"verb": "get", "path": self.path}}

    def __str__(self) -> str:
        return f"get the path {self.path}"


Right = ResourceRight | PathRight


def get_pod(namespace: str, name: str) -> Right:
    """Get the right to read everything about one pod."""
    return ResourceRight("get", "pods", namespace, name) if namespace != NO_NAMESPACE else list_pods()


def list_pods(namespace: str | None = None) -> Right:
    """Get the right to read about all pods of a namespace; without one, of every namespace."""
    # Pods of logs without namespaces may belong to anybody, and no Role can be about them.
    return ResourceRight("list", "pods", "" if namespace in (None, NO_NAMESPACE) else namespace)


def get_node(name: str) -> Right:
    return ResourceRight("get", "nodes", name=name)


LIST_NODES: Final = ResourceRight("list", "nodes")


def get_cluster(name: str) -> Right:
    """Get the right to read about another cluster than the one that the API runs in."""
    return ResourceRight("get", "clusters", name=name)
