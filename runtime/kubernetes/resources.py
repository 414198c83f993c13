"""The kinds of objects that we read and write, and their paths on the API server."""

from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from runtime.kubernetes.errors import missing


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
        """Build the path of all objects of the kind, or of those in one namespace. Raises as `object_path` does."""
        within = f"namespaces/{_path_part('namespaces', namespace)}/" if namespace else ""
        return f"{self.root}/{within}{self.plural}"

    def item(self, key: Key, subresource: str = "") -> str:
        """Build the path of one object, or of a subresource of it such as `binding`.

        Raises the `KubeApiError` of an object that is not there for `.` and `..`, which no object is called.
        """
        path = f"{self.collection(key.namespace if self.is_namespaced else '')}/{_path_part(self.plural, key.name)}"
        return f"{path}/{subresource}" if subresource else path


def _path_part(plural: str, name: str) -> str:
    # An HTTP client takes these two as steps through the path, also where they are encoded.
    if name in (".", ".."):
        raise missing(plural, name)
    return quote(name, safe="")


NODES: Final = Resource("/api/v1", "nodes", is_namespaced=False)
PODS: Final = Resource("/api/v1", "pods")
QUOTAS: Final = Resource("/api/v1", "resourcequotas")
EVENTS: Final = Resource("/apis/events.k8s.io/v1", "events")
LEASES: Final = Resource("/apis/coordination.k8s.io/v1", "leases")
