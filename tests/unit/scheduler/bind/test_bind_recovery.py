"""Each bind is published once with its end, also where the scheduler was killed or the API server did not answer."""

from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.fit.events.attempt import AttemptRef, Identity
from scheduler.bind.bind_journal import OpenBind
from scheduler.bind.bind_request import BindRequest
from schemas.codec.records import decode
from schemas.events import BindConcluded, PodRef
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_pod
from tests.support.harness.scheduler_on_fake_api import OnApi, a_cluster, build_pod_path, running

BINDING = "POST /api/v1/namespaces/default/pods/pod1/binding"
READING = "GET /api/v1/namespaces/default/pods/pod1"
STARTED = datetime(2026, 11, 21, 3, 0, 0, 123456, tzinfo=UTC)


def list_binds(scheduler: OnApi) -> list[BindConcluded]:
    """List the binds that its spool has, from all its lives."""
    events = []
    while batch := scheduler.spool.take_batch():
        events += [decode(entry.record.value, entry.record.headers) for entry in batch.entries]
    scheduler.spool.rewind()
    return [event for event in events if isinstance(event, BindConcluded)]


async def bind_without_a_word(scheduler: OnApi, pod: Json) -> OpenBind:
    """Bind as a scheduler does up to the API server's yes; then it is killed."""
    content = pod["metadata"]
    ref = PodRef(namespace=content["namespace"], name=content["name"], uid=content["uid"])
    bind = OpenBind(AttemptRef.start(Identity("default", "hami-scheduler"), ref, STARTED), "node1", datetime.now(UTC))
    await scheduler.binds.open(bind)
    request = BindRequest(ref.namespace, ref.name, ref.uid, bind.node)
    assert not (await scheduler.binder.bind(request, bind.started_at)).error
    return bind


async def test_a_bind_that_only_the_api_server_knows_of_is_reported_by_the_next_life(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        bind = await bind_without_a_word(scheduler, deepcopy(api.objects[build_pod_path("pod1")]))
    for _ in range(2):
        async with running(api, tmp_path) as (scheduler,):
            await scheduler.recovery.recover()
            (written,) = list_binds(scheduler)
            assert (written.attempt_id, written.bound, written.node) == (bind.attempt.id, True, "node1")
            assert (written.bind_started_at, written.ended_at) == (bind.started_at, bind.started_at)


async def test_a_bind_whose_event_was_not_durable_gets_the_same_event_again(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        assert await scheduler.bind(pod) == ""
        (first,) = list_binds(scheduler)
    # The last step is lost.
    journal = tmp_path / "spool" / "binds.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    async with running(api, tmp_path) as (scheduler,):
        await scheduler.recovery.recover()
        again = list_binds(scheduler)
    assert again == [first, first]
    assert again[0].id == again[1].id


async def test_a_binding_without_an_answer_is_reported_when_it_is_known_what_became_of_it(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        api.lose_answer(BINDING)
        api.fail(READING, READING)
        assert await scheduler.bind(pod) != ""
        await scheduler.recovery.recover()
        assert list_binds(scheduler) == []
        await scheduler.recovery.recover()
        (written,) = list_binds(scheduler)
        assert written.bound
        assert len(scheduler.binds) == 0


@pytest.mark.parametrize("is_there_another", [False, True])
async def test_a_pod_that_is_gone_settles_nothing_nor_does_another_of_its_name(
    tmp_path: Path, is_there_another: bool
) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        await bind_without_a_word(scheduler, deepcopy(api.objects[build_pod_path("pod1")]))
    api.drop(build_pod_path("pod1"))
    if is_there_another:
        api.put(build_pod_path("pod1"), a_pod("pod1", uid="of-the-one-after"))
    async with running(api, tmp_path) as (scheduler,):
        await scheduler.recovery.recover()
        assert list_binds(scheduler) == []
        assert len(scheduler.binds) == 0


async def test_an_api_server_that_is_away_is_asked_again(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        await bind_without_a_word(scheduler, deepcopy(api.objects[build_pod_path("pod1")]))
    async with running(api, tmp_path) as (scheduler,):
        api.fail(READING)
        await scheduler.recovery.recover()
        assert len(scheduler.binds) == 1
        await scheduler.recovery.recover()
        assert [written.bound for written in list_binds(scheduler)] == [True]
