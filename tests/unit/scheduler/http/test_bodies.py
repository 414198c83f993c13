"""M1, M15: what callers send takes bounded memory and time, and what a scheduler asks is answered all the same."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from runtime.http.bodies import SMALL_BYTES, Bodies
from scheduler.answering.extender_protocol import parse_body
from tests.support.builders.kube_objects import a_node, a_pod
from tests.support.harness.scheduler_app import Serving

MIB = 1024 * 1024
FILTER_CALL = {"Pod": a_pod(), "NodeNames": ["node1"]}


@pytest.fixture
async def serving(tmp_path: Path) -> AsyncIterator[Serving]:
    serving = Serving(tmp_path, a_node("node1"), max_body_bytes=4 * MIB)
    yield serving
    await serving.close()


class Unfinished:
    """Bodies whose ends are awaited."""

    def __init__(self, serving: Serving, count: int, size: int) -> None:
        self._serving, self._size = serving, size
        self._end = asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        self.calls = [asyncio.create_task(self._post()) for _ in range(count)]

    async def _post(self) -> int:
        return (await self._serving.http.post("/filter", content=self._iterate_parts())).status_code

    async def _iterate_parts(self) -> AsyncIterator[bytes]:
        yield b" " * self._size
        self.begun.release()
        await self._end.wait()
        yield orjson.dumps(FILTER_CALL)

    async def end(self) -> list[int]:
        self._end.set()
        return await asyncio.gather(*self.calls)


async def test_m1_unfinished_bodies_share_one_budget_and_a_scheduler_is_answered_beside_them(serving: Serving) -> None:
    # Two of the greatest length fit, and the first 256 KiB of each are free.
    three = Unfinished(serving, 3, 3 * MIB)
    done, waiting = await asyncio.wait(three.calls, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert [call.result() for call in done] == [503]
    assert len(waiting) == 2
    assert (await serving.http.post("/filter", json=FILTER_CALL)).json()["NodeNames"] == ["node1"]
    too_many = await serving.http.post("/filter", content=b" " * (3 * MIB))
    assert (too_many.status_code, "ask again" in too_many.text) == (503, True)
    assert sorted(await three.end()) == [200, 200, 503]
    # What they took is free again.
    assert await Unfinished(serving, 2, 3 * MIB).end() == [200, 200]


async def test_m1_small_bodies_need_no_budget(serving: Serving) -> None:
    many = Unfinished(serving, 60, SMALL_BYTES - 10_000)
    for _ in many.calls:
        await asyncio.wait_for(many.begun.acquire(), 30)
    assert await many.end() == [200] * 60


@pytest.mark.parametrize("value", ["{}", "[]", "0", '{"a":1}', "[[[[]]]]"])
async def test_m1_a_body_of_a_million_values_is_refused_unparsed(
    serving: Serving, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.answering.extender_protocol.parse_body", lambda _: pytest.fail("it was parsed"))
    body = f"[{','.join([value] * (3 * MIB // (len(value) + 1)))}]"
    response = await serving.http.post("/filter", content=body)
    assert response.status_code == 413
    assert "JSON values" in response.text


async def test_m1_the_values_of_whole_nodes_are_not_too_many() -> None:
    # A node of 16 kB, as the review measured: eighty-four images of two names each are most of it.
    names = ["registry.example/team/image@sha256:" + "0" * 64, "registry.example/team/image:v1.2.3"]
    node = a_node("node") | {"status": {"images": [{"names": names, "sizeBytes": 123456789}] * 84}}
    body = orjson.dumps({"Pod": a_pod(), "Nodes": {"items": [node] * 2000}})
    assert 28 * MIB < len(body) < 32 * MIB
    Bodies(32 * MIB).refuse_many_values(body)


@contextmanager
def counted_collections() -> Iterator[list[str]]:
    seen: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        seen.append(phase)

    gc.callbacks.append(note)
    try:
        yield seen
    finally:
        gc.callbacks.remove(note)


def test_m1_pythons_collector_does_not_run_while_a_body_is_parsed() -> None:
    body = b"[" + b"[]," * 100_000 + b"0]"
    with counted_collections() as seen:
        values = parse_body(body)
    assert (len(values), seen) == (100_001, [])
    assert gc.isenabled()
    with pytest.raises(orjson.JSONDecodeError):
        parse_body(b"[")
    assert gc.isenabled()


async def test_m15_a_body_of_too_many_whole_nodes_says_how_to_send_names(serving: Serving) -> None:
    response = await serving.http.post("/filter", content=b" " * (5 * MIB))
    assert response.status_code == 413
    assert "nodeCacheCapable: true" in response.text
    assert "--max-body-size" in response.text
