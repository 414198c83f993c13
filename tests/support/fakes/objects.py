"""The objects of an API server as a dictionary: path to object; what is not in it is not found."""

from collections.abc import Mapping

from runtime.kubernetes.errors import KubeApiError
from schemas.json_types import Json


class FakeObjects:
    """``refused``: path to the error that reading it raises."""

    def __init__(self, objects: Mapping[str, Json] | None = None, *, is_connected: bool = True) -> None:
        self.objects = dict(objects or {})
        self.refused: dict[str, KubeApiError] = {}
        self.is_connected = is_connected
        self.reads: list[str] = []

    async def get(self, path: str) -> Json:
        self.reads.append(path)
        if error := self.refused.get(path):
            raise error
        if path not in self.objects:
            raise KubeApiError(404, f'"{path.rsplit("/", 1)[-1]}" not found')
        return self.objects[path]

    async def read_page(self, path: str, **query: str | int) -> Json:
        self.reads.append(path)
        if error := self.refused.get(path):
            raise error
        return self.objects.get(path) or {"items": self._list_below(path), "metadata": {}}

    def _list_below(self, path: str) -> list[Json]:
        """List the objects whose paths lie directly below that of a collection."""
        return [item for item_path, item in self.objects.items() if item_path.rpartition("/")[0] == path]
