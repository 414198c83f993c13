"""The kinds of objects that we read and write, and their paths on the API server."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote

Json = dict[str, Any]


class Key(NamedTuple):
    """Identifies an object among those of its kind; `namespace` is empty for nodes."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object: `root` is the path of its API group, `plural` the last part of the path of its collection."""

    root: str
    plural: str
    is_namespaced: bool = True

    def collection(self, namespace: str = "") -> str:
        """Path of all objects of the kind, or of those in one namespace."""
        return (
            f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"
            if namespace
            else f"{self.root}/{self.plural}"
        )

    def item(self, key: Key, subresource: str = "") -> str:
        """Path of one object, or of a subresource of it such as `binding`."""
        path = f"{self.collection(key.namespace if self.is_namespaced else '')}/{quote(key.name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


NODES: Final = Resource("/api/v1", "nodes", is_namespaced=False)
PODS: Final = Resource("/api/v1", "pods")
QUOTAS: Final = Resource("/api/v1", "resourcequotas")
EVENTS: Final = Resource("/apis/events.k8s.io/v1", "events")
LEASES: Final = Resource("/apis/coordination.k8s.io/v1", "leases")
