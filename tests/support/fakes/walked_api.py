"""An API server in memory: a test picks which call it carries out, answers, loses or repeats.

Its rules are those of a real one: a merge patch and a binding may name a UID and a resourceVersion as conditions, and a
pod is bound once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import orjson

from runtime.kubernetes.errors import NO_ANSWER, KubeApiError, build_missing_error
from schemas.json_types import Json
from tests.support.fakes.api_server import merge

Outcome = Json | KubeApiError


@dataclass(eq=False, slots=True)
class Call:
    """A request on its way. It may be carried out and answered at different times, and after its caller gave up."""

    caller: int
    text: str
    do: Callable[[], Outcome]
    answer: asyncio.Future[Json]
    outcome: Outcome | None = None

    def carry_out(self) -> None:
        if self.outcome is None:
            self.outcome = self.do()

    def reply(self) -> None:
        self.carry_out()
        if isinstance(self.outcome, KubeApiError):
            self.answer.set_exception(self.outcome)
        elif self.outcome is not None:
            self.answer.set_result(deepcopy(self.outcome))

    def lose(self) -> None:
        """Give up the call: its caller waits no longer; the request itself may still arrive."""
        self.answer.set_exception(KubeApiError(NO_ANSWER, f"{self.text}: no answer"))


@dataclass(eq=False, slots=True)
class Watch:
    """Events of one watch that were not delivered yet."""

    path: str
    version: int
    parts: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)


class WalkedApi:
    """The server. `after_write` is called after each change, for what has to hold at any time."""

    def __init__(self, after_write: Callable[[], None]) -> None:
        self.objects: dict[str, Json] = {}
        self.calls: list[Call] = []
        self.late: list[Call] = []
        self.watches: list[Watch] = []
        self.log: list[str] = []
        self._version, self._after_write = 100, after_write
        self._history: list[tuple[int, str, bytes]] = []

    def put(self, path: str, item: Json, kind: str = "MODIFIED") -> Json:
        self._version += 1
        self.objects[path] = {**item, "metadata": item["metadata"] | {"resourceVersion": str(self._version)}}
        event = orjson.dumps({"type": kind, "object": self.objects[path]}) + b"\n"
        self._history.append((self._version, path.split("/")[-2], event))
        self._after_write()
        return self.objects[path]

    def list_undelivered(self, watch: Watch) -> list[tuple[int, bytes]]:
        return [
            (version, event)
            for version, plural, event in self._history
            if version > watch.version and watch.path.endswith(plural)
        ]

    def deliver(self, watch: Watch) -> None:
        """Deliver the next event of the watch."""
        watch.version, event = self.list_undelivered(watch)[0]
        watch.parts.put_nowait(event)

    def create_client(self, caller: int) -> "WalkedClient":
        return WalkedClient(self, caller)

    def patch(self, path: str, change: Json) -> Outcome:
        if path not in self.objects:
            return build_missing_error("object", path)
        metadata = self.objects[path]["metadata"]
        for condition in ("resourceVersion", "uid"):
            if change["metadata"].get(condition, metadata.get(condition)) != metadata.get(condition):
                return KubeApiError(409, f"the object has been modified: {condition}")
        return self.put(path, merge(self.objects[path], change))

    def bind(self, path: str, binding: Mapping[str, Any]) -> Outcome:
        pod = self.objects[path]
        wanted = {key: binding["metadata"][key] for key in ("uid", "resourceVersion") if key in binding["metadata"]}
        if pod["spec"].get("nodeName"):
            return KubeApiError(409, f'pod is already assigned to node "{pod["spec"]["nodeName"]}"')
        if any(pod["metadata"][key] != value for key, value in wanted.items()):
            return KubeApiError(409, f"Precondition failed: {wanted}")
        self.put(path, {**pod, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}})
        return {"kind": "Status", "status": "Success", "metadata": {}}

    def list_objects(self, path: str) -> Json:
        items = [
            deepcopy(item)
            for object_path, item in self.objects.items()
            if object_path.split("/")[-2] == path.split("/")[-1]
        ]
        return {"items": items, "metadata": {"resourceVersion": str(self._version)}}


class WalkedClient:
    """Client with the methods of `runtime.kubernetes.client.Client` that a scheduler uses."""

    def __init__(self, api: WalkedApi, caller: int) -> None:
        self._api, self._caller = api, caller

    async def _call(self, text: str, do: Callable[[], Outcome]) -> Json:
        call = Call(self._caller, text, do, asyncio.get_running_loop().create_future())
        self._api.calls.append(call)
        return await call.answer

    async def get(self, path: str) -> Json:
        return await self._call(
            f"GET {path}", lambda: self._api.objects.get(path) or build_missing_error("object", path)
        )

    async def get_page(self, path: str, **_: object) -> Json:
        return await self._call(f"LIST {path}", lambda: self._api.list_objects(path))

    async def patch(self, path: str, change: Json) -> Json:
        return await self._call(f"PATCH {path}", lambda: self._api.patch(path, change))

    async def create(self, path: str, obj: Json) -> Json:
        return await self._call(f"POST {path}", lambda: self._api.bind(path.removesuffix("/binding"), obj))

    @asynccontextmanager
    async def watch(self, path: str, *, resourceVersion: str, **_: object) -> AsyncIterator[AsyncIterator[bytes]]:  # noqa: N803 - Kubernetes' name
        watch = Watch(path, int(resourceVersion))
        self._api.watches.append(watch)

        async def iterate_parts() -> AsyncIterator[bytes]:
            while True:
                yield await watch.parts.get()

        yield iterate_parts()

    async def close(self) -> None:
        """Close nothing: nothing is open."""
