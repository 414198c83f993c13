"""Kinds of objects that we read and write, and their paths on the API server."""

from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from runtime.kubernetes.errors import build_missing_error


class Key(NamedTuple):
    """Namespace and name of an object among the objects of its kind; `namespace` is empty for nodes."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object: `root` is the path of its API group, `plural` the last part of the path of its collection."""

    root: str
    plural: str
    is_namespaced: bool = True

    def build_collection_path(self, namespace: str = "") -> str:
        """Build the path of all objects of the kind, or of the objects in one namespace. Raises as `build_object_path`
        does.
        """
        within = f"namespaces/{_quote_path_part('namespaces', namespace)}/" if namespace else ""
        return f"{self.root}/{within}{self.plural}"

    def build_object_path(self, key: Key, subresource: str = "") -> str:
        """Build the path of one object, or of a subresource of it such as `binding`.

        Raises the `KubeApiError` of a missing object for the names `.` and `..`, which no object has.
        """
        collection = self.build_collection_path(key.namespace if self.is_namespaced else "")
        path = f"{collection}/{_quote_path_part(self.plural, key.name)}"
        return f"{path}/{subresource}" if subresource else path


def _quote_path_part(plural: str, name: str) -> str:
    # An HTTP client takes these two as steps through the path, also where they are encoded.
    if name in (".", ".."):
        raise build_missing_error(plural, name)
    return quote(name, safe="")


NODES: Final = Resource("/api/v1", "nodes", is_namespaced=False)
PODS: Final = Resource("/api/v1", "pods")
QUOTAS: Final = Resource("/api/v1", "resourcequotas")
EVENTS: Final = Resource("/apis/events.k8s.io/v1", "events")
LEASES: Final = Resource("/apis/coordination.k8s.io/v1", "leases")
