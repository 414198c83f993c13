"""Objects of a cluster as its API server lists them: by group, version, namespace and field selector."""

from collections.abc import Iterable
from typing import Final

from engine.snapshot.case_objects import collect_objects
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json

_PLURALS: Final = {"Class": "Classes", "y": "ies"}
_BUILT_IN: Final = ("events.k8s.io", "storage.k8s.io", "batch", "apps")


class ClusterObjects:
    """``refused``: plurals of collections that the account may not list."""

    def __init__(self, objects: Iterable[Json], refused: Iterable[str] = ()) -> None:
        self.is_connected = True
        self.refused = set(refused)
        self.reads: list[str] = []
        self._collections: dict[tuple[str, str], list[Json]] = {}
        self._versions: dict[str, list[str]] = {"scheduling.k8s.io": ["v1"]}
        for table in collect_objects(objects).tables.values():
            for item in table.values():
                self._add(dict(item))

    def _add(self, item: Json) -> None:
        version = "events.k8s.io/v1" if item["kind"] == "Event" else str(item["apiVersion"])
        group, _, number = version.rpartition("/")
        if group:
            self._versions.setdefault(group, []).append(number)
        root = f"/apis/{version}" if group else f"/api/{version}"
        self._collections.setdefault((root, _to_plural(item["kind"])), []).append(item)

    async def get(self, path: str) -> Json:
        self.reads.append(path)
        if path == "/apis":
            return {"groups": [_describe_group(name, versions) for name, versions in self._versions.items()]}
        collection, _, name = path.rpartition("/")
        for item in self._list(collection, ""):
            if item["metadata"]["name"] == name:
                return item
        raise KubeApiError(404, f'"{name}" not found')

    async def read_page(self, path: str, **query: str | int) -> Json:
        self.reads.append(path)
        return {"items": self._list(path, str(query.get("fieldSelector", ""))), "metadata": {}}

    def _list(self, path: str, selector: str) -> list[Json]:
        begin, _, plural = path.rpartition("/")
        if plural in self.refused:
            raise KubeApiError(403, f"{plural} is forbidden")
        root, _, namespace = begin.partition("/namespaces/")
        if root.startswith("/apis/") and root.split("/")[2] not in (*self._versions, *_BUILT_IN):
            raise KubeApiError(404, "the server could not find the requested resource")
        items = self._collections.get((root, plural), [])
        return [
            item
            for item in items
            if namespace in ("", item["metadata"].get("namespace", "default")) and _is_selected(item, selector)
        ]


def _to_plural(kind: str) -> str:
    for singular, plural in _PLURALS.items():
        if kind.endswith(singular):
            return f"{kind.removesuffix(singular)}{plural}".lower()
    return f"{kind.lower()}s"


def _describe_group(name: str, versions: list[str]) -> Json:
    numbers = list(dict.fromkeys(versions))
    return {
        "name": name,
        "preferredVersion": {"version": numbers[0]},
        "versions": [{"version": number} for number in numbers],
    }


def _is_selected(item: Json, selector: str) -> bool:
    field, operator, value = selector.partition("=")
    if operator and field == "metadata.name":
        return bool(item["metadata"]["name"] == value)
    # The selector of pods that have not ended.
    return not selector.startswith("status.phase!=") or get_text(item, "status", "phase") not in ("Succeeded", "Failed")
