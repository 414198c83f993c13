"""A reflector follows a collection through all that goes wrong with connections, and loses nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.reflector import Reflector, Selection, WatchTimeouts
from runtime.kubernetes.resources import PODS
from runtime.kubernetes.store import ObjectRef
from schemas.json_types import Json
from tests.support.fakes.api_server import FakeApi, a_client, serving
from tests.support.waiting import eventually_async

PATIENCE = WatchTimeouts()
POD = "/api/v1/namespaces/n/pods/"


class Names:
    """Resource versions of the objects that exist, by name."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}
        self.reports = 0

    def on_changed(self, obj: Json) -> None:
        self.there[obj["metadata"]["name"]] = obj["metadata"]["resourceVersion"]
        self.reports += 1

    def on_deleted(self, ref: ObjectRef) -> None:
        del self.there[ref.key.name]
        self.reports += 1


@asynccontextmanager
async def following(
    api: FakeApi, patience: WatchTimeouts = PATIENCE, names: Names | None = None, **how: Any
) -> AsyncIterator[tuple[Reflector, Names, Client]]:
    async with serving(api) as url, a_client(url, **how) as client:
        names = names or Names()
        reflector = Reflector(client, Selection(PODS), names, patience)
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector, names, client
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def put(api: FakeApi, *names: str) -> None:
    for name in names:
        api.put(POD + name, {"metadata": {"namespace": "n"}, "spec": {}})


def compare_with(api: FakeApi, names: Names) -> Callable[[], bool]:
    def holds() -> bool:
        return names.there == {
            path.rsplit("/", 1)[1]: obj["metadata"]["resourceVersion"] for path, obj in api.objects.items()
        }

    return holds


async def test_pages_are_read_to_the_end_before_it_counts_as_in_sync() -> None:
    api = FakeApi()
    put(api, *(f"p{number}" for number in range(1100)))
    async with following(api) as (reflector, names, _):
        assert reflector.problem == "pods are being listed"
        await reflector.wait_until_synced()
        assert compare_with(api, names)()
        assert (len(reflector), reflector.problem) == (1100, "")
        assert sum("watch" not in request for request in api.requests) == 3


async def test_changes_arrive_while_the_watch_is_up() -> None:
    api = FakeApi()
    put(api, "a", "b")
    async with following(api) as (reflector, names, _):
        await reflector.wait_until_synced()
        put(api, "b", "c")
        api.drop(POD + "a")
        await eventually_async(compare_with(api, names))
        assert names.reports == 2 + 3


async def test_what_happened_while_the_watch_was_cut_is_reported_once_it_is_back() -> None:
    api = FakeApi()
    put(api, "a", "b")
    async with following(api) as (reflector, names, _):
        await reflector.wait_until_synced()
        await eventually_async(lambda: any("watch" in request for request in api.requests))
        api.fail("GET /api/v1/pods watch", "GET /api/v1/pods watch", status=503)
        api.cut_watches()
        put(api, "c")
        api.drop(POD + "a")
        await eventually_async(compare_with(api, names))
        assert names.reports == 2 + 2
        assert reflector.restarts >= 3
        assert sum("watch" not in request for request in api.requests) == 1, "nothing was listed again"


async def test_a_version_that_is_too_old_leads_to_a_list_and_the_deleted_go() -> None:
    api = FakeApi()
    put(api, "a", "b")
    async with following(api) as (reflector, names, _):
        await reflector.wait_until_synced()
        await eventually_async(lambda: any("watch" in request for request in api.requests))
        api.mute_watches = True
        put(api, "b", "c")
        api.drop(POD + "a")
        api.expire()
        api.mute_watches = False
        api.cut_watches()
        await eventually_async(compare_with(api, names))
        assert names.reports == 2 + 3


class ChangesWithProblem(Names):
    """Problem of the reflector at each report."""

    def __init__(self) -> None:
        super().__init__()
        self.find_problem: Callable[[], str] = str
        self.problems: list[str] = []

    def on_changed(self, obj: Json) -> None:
        super().on_changed(obj)
        self.problems.append(self.find_problem())


async def test_after_a_long_break_the_view_is_stale_until_the_last_page_of_the_list() -> None:
    api, names = FakeApi(), ChangesWithProblem()
    pods = [f"p{number}" for number in range(600)]
    put(api, *pods)
    async with following(api, WatchTimeouts(stale_seconds=0), names) as (reflector, _, _client):
        await reflector.wait_until_synced()
        await eventually_async(lambda: any("watch" in request for request in api.requests))
        names.find_problem = lambda: reflector.problem
        names.problems.clear()
        api.mute_watches = True
        put(api, *pods)
        api.expire()
        api.mute_watches = False
        api.cut_watches()
        await eventually_async(compare_with(api, names))
        assert len(names.problems) == len(pods)
        assert all("the watch of pods is broken" in problem for problem in names.problems)
        await eventually_async(lambda: not reflector.problem)


async def test_a_list_that_fails_is_tried_again_and_says_why_meanwhile() -> None:
    api = FakeApi()
    put(api, "a")
    api.fail(*["GET /api/v1/pods"] * 3, status=403)
    async with following(api) as (reflector, names, _):
        await eventually_async(lambda: "403" in reflector.problem)
        await reflector.wait_until_synced()
        assert compare_with(api, names)()


async def test_pages_that_expire_under_way_are_read_again_in_one() -> None:
    api = FakeApi()
    put(api, *(f"p{number}" for number in range(600)))
    async with following(api) as (reflector, names, _):
        await reflector.wait_until_synced()
        api.fail("GET /api/v1/pods", status=410)
        api.drop(POD + "p0")
        await reflector.relist()
        assert compare_with(api, names)()


async def test_a_watch_that_says_nothing_for_too_long_is_given_up() -> None:
    api = FakeApi()
    async with following(api, WatchTimeouts(silence_seconds=0.1)) as (reflector, names, _):
        await reflector.wait_until_synced()
        await eventually_async(lambda: reflector.restarts >= 1)
        put(api, "a")
        await eventually_async(compare_with(api, names))


async def test_a_watch_that_remains_broken_makes_the_view_stale() -> None:
    api = FakeApi()
    async with following(api, WatchTimeouts(stale_seconds=0.2)) as (reflector, _, _client):
        await reflector.wait_until_synced()
        await eventually_async(lambda: any("watch" in request for request in api.requests))
        api.fail(*["GET /api/v1/pods watch"] * 3)
        api.cut_watches()
        await eventually_async(lambda: reflector.problem.startswith("the watch of pods is broken"))
        await eventually_async(lambda: not reflector.problem)


async def test_an_own_write_is_reported_at_once_and_the_event_that_repeats_it_is_not() -> None:
    api = FakeApi()
    put(api, "a")
    async with following(api) as (reflector, names, client):
        await reflector.wait_until_synced()
        api.mute_watches = True
        reflector.apply_own_write(await client.patch(POD + "a", {"metadata": {"labels": {"x": "y"}}}))
        assert compare_with(api, names)()
        api.mute_watches = False
        put(api, "b")
        await eventually_async(compare_with(api, names))
        assert names.reports == 1 + 1 + 1


@pytest.mark.parametrize("refusal", [401, 429])
async def test_old_credentials_and_too_many_requests_are_no_reason_to_fail(refusal: int) -> None:
    api = FakeApi()
    put(api, "a")
    counted: list[tuple[str, str]] = []
    async with serving(api) as url, a_client(url, count=lambda *call: counted.append(call)) as client:
        api.fail("GET /api/v1/namespaces/n/pods/a", status=refusal)
        await client.get(POD + "a")
        assert counted == [("get", str(refusal)), ("get", "200")]


@pytest.mark.parametrize(("faults", "requests"), [(0, 3), (1, 2)], ids=["in pages", "in one when pages expire"])
async def test_a_list_is_read_in_pages_of_500(faults: int, requests: int) -> None:
    api = FakeApi()
    names = [f"p{number}" for number in range(1_200)]
    put(api, *names)
    api.fail(*["GET /api/v1/pods"] * faults, status=410)
    async with serving(api) as url, a_client(url) as client:
        pods = await client.list_objects("/api/v1/pods")
    assert sorted(pod["metadata"]["name"] for pod in pods) == sorted(names)
    assert len(api.requests) == requests


async def test_a_request_without_answer_leaves_it_open_whether_it_was_done() -> None:
    api = FakeApi()
    put(api, "a")
    async with serving(api) as url, a_client(url) as client:
        api.lose_answer(f"PATCH {POD}a")
        with pytest.raises(KubeApiError) as failed:
            await client.patch(POD + "a", {"metadata": {"labels": {"x": "y"}}})
        assert failed.value.is_unsure
        assert api.objects[POD + "a"]["metadata"]["labels"] == {"x": "y"}
    async with a_client(url) as client:
        with pytest.raises(KubeApiError, match=r"GET /api/v1/pods: 127.0.0.1:.* can't be reached") as failed:
            await client.get_page("/api/v1/pods")
        assert failed.value.is_unsure


async def test_a_rate_spreads_requests() -> None:
    from runtime.backoff import RateLimiter

    rate = RateLimiter(qps=10, burst=2)
    assert [round(rate.delay_seconds(100.0), 3) for _ in range(4)] == [0, 0, 0.1, 0.2]
    assert rate.delay_seconds(101.0) == 0
    assert RateLimiter(0, 1).delay_seconds(0) == 0
