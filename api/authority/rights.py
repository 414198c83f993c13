"""The rights that answers need, as Kubernetes' Roles name them. Pure.

Resources of the group ``schedulerlog.io``, all with the subresource ``schedulerlog``: ``pods`` in their namespace,
``nodes``, and ``clusters`` for every cluster but the one that the API runs in.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from api.http.param_types import NO_NAMESPACE

GROUP: Final = "schedulerlog.io"
SUBRESOURCE: Final = "schedulerlog"


@dataclass(frozen=True, slots=True)
class ResourceRight:
    """A verb on one object, or on all of a namespace or the cluster."""

    verb: Literal["get", "list"]
    resource: Literal["pods", "nodes", "clusters"]
    namespace: str = ""
    """Empty: all namespaces, or a resource without one."""
    name: str = ""

    def attributes(self) -> dict[str, Any]:
        """The part of a SubjectAccessReview's spec that names it."""
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
        of = f" {self.name}" if self.name else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        everywhere = " in all namespaces" if self.resource == "pods" and not where else ""
        return f"{self.verb} {self.resource}/{SUBRESOURCE}{of}{where}{everywhere}"


@dataclass(frozen=True, slots=True)
class PathRight:
    """To read a path that is about no object: metrics, the parts of readiness."""

    path: str

    def attributes(self) -> dict[str, Any]:
        """As of a ``ResourceRight``."""
        return {"nonResourceAttributes": {"verb": "get", "path": self.path}}

    def __str__(self) -> str:
        return f"get the path {self.path}"


Right = ResourceRight | PathRight


def get_pod(namespace: str, name: str) -> Right:
    """To read everything about one pod."""
    return ResourceRight("get", "pods", namespace, name) if namespace != NO_NAMESPACE else list_pods()


def list_pods(namespace: str | None = None) -> Right:
    """To read about all pods of a namespace; of every namespace without one."""
    # Pods of logs without namespaces may be anybody's, and no Role can be about them.
    return ResourceRight("list", "pods", "" if namespace in (None, NO_NAMESPACE) else namespace)


def get_node(name: str) -> Right:
    return ResourceRight("get", "nodes", name=name)


LIST_NODES: Final = ResourceRight("list", "nodes")


def get_cluster(name: str) -> Right:
    """To read about another cluster than the one that the API runs in."""
    return ResourceRight("get", "clusters", name=name)
