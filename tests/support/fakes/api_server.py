"""A small API server on a loopback port, with faults on demand: lists in pages, watches from a version, merge patches.

It stands in for the real one only where a fault must come at an exact moment; tests/integration has the real one.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import orjson
from aiohttp import web
from kubernetes.aio.client import Configuration

from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials
from schemas.json_types import Json


class FakeApi:
    """Objects by path. `history` is what watches resume from; `oldest` the first version that it still has."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.history: list[tuple[int, str, Json]] = []
        self.version, self.oldest = 100, 0
        self.requests: list[str] = []
        self.faults: list[tuple[str, int]] = []
        self.lost_answers: list[str] = []
        self.held_answers: dict[str, asyncio.Event] = {}
        self.mute_watches = False
        self.delay_seconds = 0.0
        self.max_concurrent_writes = self._writes = 0
        self._news = asyncio.Event()
        self._is_cut = asyncio.Event()

    # What a test does to the cluster

    def put(self, path: str, item: Json) -> Json:
        """Create or replace an object as somebody else would."""
        self.version += 1
        kind = "MODIFIED" if path in self.objects else "ADDED"
        name = path.rsplit("/", 1)[1]
        before = self.objects.get(path, {}).get("metadata", {})
        metadata = {"name": name, "uid": before.get("uid", f"uid-{name}-{self.version}"), **item.get("metadata", {})}
        self.objects[path] = {**item, "metadata": metadata | {"resourceVersion": str(self.version)}}
        return self._notify_watches(kind, path)

    def drop(self, path: str) -> None:
        self.version += 1
        self.objects[path]["metadata"]["resourceVersion"] = str(self.version)
        self._notify_watches("DELETED", path)
        del self.objects[path]

    def _notify_watches(self, kind: str, path: str) -> Json:
        copied = deepcopy(self.objects[path])
        self.history.append((self.version, path, {"type": kind, "object": copied}))
        self._news.set()
        return copied

    def fail(self, *requests: str, status: int = 500) -> None:
        """Let the next request that starts so (`GET /api/v1/pods`) fail; once for each that is named."""
        self.faults += [(request, status) for request in requests]

    def lose_answer(self, request: str) -> None:
        """Carry out the next request that starts so, and cut the connection before the answer."""
        self.lost_answers.append(request)

    def hold_answer(self, request: str) -> asyncio.Event:
        """Carry out the next request that starts so, and answer it when the event is set."""
        self.held_answers[request] = event = asyncio.Event()
        return event

    def cut_watches(self) -> None:
        self._is_cut.set()
        self._is_cut = asyncio.Event()

    def expire(self) -> None:
        """Forget what happened so far: who resumes from before has to list again."""
        self.oldest = self.version
        self.history.clear()

    # HTTP

    async def answer(self, request: web.Request) -> web.StreamResponse:
        request_line = f"{request.method} {request.path}"
        self.requests.append(request_line + (" watch" if "watch" in request.query else ""))
        for fault in self.faults:
            if self.requests[-1].startswith(fault[0]):
                self.faults.remove(fault)
                return _build_status(fault[1], f"the fault that was asked for: {fault[1]}")
        if request.method == "GET":
            if "watch" in request.query:
                return await self._watch(request)
            return self._get(request)
        self._writes += 1
        self.max_concurrent_writes = max(self.max_concurrent_writes, self._writes)
        await asyncio.sleep(self.delay_seconds)
        self._writes -= 1
        reply = self._write(request.method, request.path, orjson.loads(await request.read()))
        if held := self.held_answers.pop(request_line, None):
            await held.wait()
        if request_line in self.lost_answers:
            self.lost_answers.remove(request_line)
            assert request.transport
            request.transport.abort()
        return reply

    def _get(self, request: web.Request) -> web.Response:
        if request.path in self.objects:
            return _build_response(self.objects[request.path])
        if request.path.rsplit("/", 1)[1] not in ("pods", "nodes", "resourcequotas"):
            return _build_status(404, f'"{request.path.rsplit("/", 1)[1]}" not found')
        items = [item for path, item in self.objects.items() if _is_of(request.path, path)]
        start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 0)) or len(items) + 1
        metadata: Json = {"resourceVersion": str(self.version)}
        if start + limit < len(items):
            metadata["continue"] = str(start + limit)
        return _build_response({"items": items[start : start + limit], "metadata": metadata})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response, cut = web.StreamResponse(), self._is_cut
        await response.prepare(request)
        seen_version = int(request.query["resourceVersion"])
        if seen_version < self.oldest:
            too_old = {
                "type": "ERROR",
                "object": {"kind": "Status", "code": 410, "message": "too old resource version"},
            }
            await response.write(orjson.dumps(too_old) + b"\n")
            return response
        while not cut.is_set():
            self._news.clear()
            for version, path, notice in [] if self.mute_watches else list(self.history):
                if version > seen_version and _is_of(request.path, path):
                    seen_version = version
                    line = orjson.dumps(notice) + b"\n"
                    # In two parts, as lines come when they are long.
                    await response.write(line[: len(line) // 2])
                    await response.write(line[len(line) // 2 :])
            waits = [asyncio.ensure_future(event.wait()) for event in (cut, self._news)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        return response

    def _write(self, method: str, path: str, body: Json) -> web.Response:
        if path.endswith("/binding"):
            pod = self.objects[path.removesuffix("/binding")]
            self.put(
                path.removesuffix("/binding"), {**pod, "spec": {**pod["spec"], "nodeName": body["target"]["name"]}}
            )
            return _build_response({"kind": "Status", "status": "Success"}, 201)
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return _build_status(409, "already exists")
            return _build_response(self.put(path, body), 201)
        if path not in self.objects:
            return _build_status(404, f'pods "{path.rsplit("/", 1)[1]}" not found')
        for field in ("resourceVersion", "uid"):
            if (
                body["metadata"].get(field, self.objects[path]["metadata"][field])
                != self.objects[path]["metadata"][field]
            ):
                return _build_status(409, "the object has been modified")
        return _build_response(self.put(path, body if method == "PUT" else merge(self.objects[path], body)))


def _is_of(collection: str, path: str) -> bool:
    """Tell whether the object belongs to the collection of all namespaces."""
    return path.split("/")[-2] == collection.rsplit("/", 1)[1]


def merge(into: Any, change: Any) -> Any:
    if not isinstance(change, Mapping):
        return change
    unchanged = {key: value for key, value in into.items() if key not in change} if isinstance(into, Mapping) else {}
    old = into if isinstance(into, Mapping) else {}
    return unchanged | {key: merge(old.get(key), value) for key, value in change.items() if value is not None}


def _build_response(body: Json, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def _build_status(status: int, message: str) -> web.Response:
    reply = _build_response({"kind": "Status", "status": "Failure", "code": status, "message": message}, status)
    reply.headers["Retry-After"] = "0"
    return reply


@asynccontextmanager
async def serving(api: FakeApi) -> AsyncIterator[str]:
    """The URL while it is up."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        api.cut_watches()
        await runner.cleanup()


@asynccontextmanager
async def a_client(url: str, **how: Any) -> AsyncIterator[Client]:
    configuration = Configuration(host=url)

    async def load() -> Configuration:
        return configuration

    client = Client(await ApiCredentials.open(load), **how)
    try:
        yield client
    finally:
        await client.close()
