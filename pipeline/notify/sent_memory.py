"""Memory of what was sent last about each workload, so that nothing is sent twice: in a ConfigMap, or in a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import orjson

from pipeline.notify.waiting_workloads import SubscribedWorkload
from runtime.files.state_files import replace_private
from runtime.kubernetes.errors import KubeApiError
from schemas.json_types import Json

MAX_WORKLOADS: Final = 4_000
"""Limit of what a ConfigMap of 1 MiB holds; the workload that changed longest ago leaves first."""
_DATA: Final = "sent.json"
_NOT_FOUND: Final = 404


class Sent(NamedTuple):
    code: str
    number: int
    """Number of the message since the wait began."""
    since: str
    pod: str


class SentStore(Protocol):
    async def load(self) -> bytes:
        """Load what was saved; empty bytes for nothing."""
        ...

    async def save(self, content: bytes) -> None: ...


@dataclass(slots=True)
class SentMemory:
    store: SentStore
    is_changed: bool = False
    """True while the store lacks something."""
    _sent: dict[SubscribedWorkload, dict[str, Sent]] = field(default_factory=dict)

    async def load(self) -> None:
        """Load the memory, which other versions may have written. Raises as the store."""
        rows = orjson.loads(await self.store.load() or b"[]")
        self.is_changed = False
        self._sent = {
            SubscribedWorkload(namespace, workload): {target: Sent(*fields) for target, fields in sent.items()}
            for namespace, workload, sent in rows
        }

    def list_keys(self) -> list[SubscribedWorkload]:
        return list(self._sent)

    def get_sent(self, key: SubscribedWorkload) -> Mapping[str, Sent]:
        return self._sent.get(key, {})

    def put(self, key: SubscribedWorkload, target: str, sent: Sent) -> None:
        """Remember a message."""
        self._sent[key] = {**self._sent.pop(key, {}), target: sent}
        while len(self._sent) > MAX_WORKLOADS:
            del self._sent[next(iter(self._sent))]
        self.is_changed = True

    def forget(self, key: SubscribedWorkload, target: str | None = None) -> None:
        """Forget a workload whose wait has ended, for one target or for all."""
        left = {name: sent for name, sent in self._sent.pop(key, {}).items() if target not in (None, name)}
        if left:
            self._sent[key] = left
        self.is_changed = True

    async def save(self) -> None:
        """Save the memory, if it has changed. Raises as the store."""
        if not self.is_changed:
            return
        rows = [[*key, {name: list(sent) for name, sent in targets.items()}] for key, targets in self._sent.items()]
        await self.store.save(orjson.dumps(rows))
        self.is_changed = False


class WriteObjects(Protocol):
    """Client of the API server."""

    async def get(self, path: str) -> Json: ...

    async def patch(self, path: str, change: Json) -> Json: ...

    async def create(self, path: str, obj: Json) -> Json: ...


@dataclass(frozen=True, slots=True)
class ConfigMapStore:
    client: WriteObjects
    namespace: str
    name: str

    @property
    def _folder(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    async def load(self) -> bytes:
        try:
            answer = await self.client.get(f"{self._folder}/{self.name}")
        except KubeApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return b""
        return str((answer.get("data") or {}).get(_DATA, "")).encode()

    async def save(self, content: bytes) -> None:
        change = {"data": {_DATA: content.decode()}}
        try:
            await self.client.patch(f"{self._folder}/{self.name}", change)
        except KubeApiError as error:
            if error.status != _NOT_FOUND:
                raise
            metadata = {"name": self.name, "namespace": self.namespace}
            await self.client.create(
                self._folder, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **change}
            )


@dataclass(frozen=True, slots=True)
class FileStore:
    path: Path

    async def load(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""

    async def save(self, content: bytes) -> None:
        replace_private(self.path, content)
