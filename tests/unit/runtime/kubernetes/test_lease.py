"""Leader election: never two leaders, and soon one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from runtime.kubernetes.colocated_leadership import ColocatedLeadership
from runtime.kubernetes.election import Election
from runtime.kubernetes.lease import (
    LeadershipDeadline,
    LeaseStep,
    LeaseTimings,
    ObservedLease,
    build_claim,
    build_resignation,
    decide_step,
    derive_lead_end,
)
from runtime.kubernetes.resources import LEASES, Key
from tests.support.fakes.api_server import FakeApi, a_client, serving
from tests.support.waiting import eventually_async

KEY, TERMS, NOW = Key("kube-system", "schedulerlog-scheduler"), LeaseTimings(), datetime(2026, 11, 21, 3, 0, 0, 5, UTC)


def a_lease(holder: str = "other", renewed: str = "2026-11-21T02:59:59.000000Z", **spec: Any) -> dict[str, Any]:
    full_spec = {
        "holderIdentity": holder,
        "renewTime": renewed,
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        **spec,
    }
    return {"metadata": {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": "7"}, "spec": full_spec}


def test_where_there_is_none_it_is_created() -> None:
    assert decide_step(ObservedLease(), "me", 0) is LeaseStep.CREATE
    assert build_claim(ObservedLease(), KEY, "me", TERMS, NOW)["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-11-21T03:00:00.000005Z",
        "acquireTime": "2026-11-21T03:00:00.000005Z",
        "leaseTransitions": 0,
    }


def test_a_lease_is_over_when_it_was_seen_unchanged_for_its_duration_whatever_the_clocks_say() -> None:
    observed = ObservedLease().observe(a_lease(), 100.0)
    assert decide_step(observed, "me", 115.0) is LeaseStep.WAIT
    assert decide_step(observed.observe(a_lease(), 115.1), "me", 115.1) is LeaseStep.TAKE
    renewed = observed.observe(a_lease(renewed="2026-11-21T03:00:09.000000Z"), 110.0)
    assert decide_step(renewed, "me", 120.0) is LeaseStep.WAIT


def test_taking_it_counts_a_transition_and_carries_the_version_that_was_read() -> None:
    taken = build_claim(ObservedLease(a_lease(), 1.0), KEY, "me", TERMS, NOW)
    assert (taken["spec"]["holderIdentity"], taken["spec"]["leaseTransitions"]) == ("me", 4)
    assert taken["metadata"]["resourceVersion"] == "7"


def test_our_own_is_renewed_and_keeps_since_when_it_is_ours() -> None:
    observed = ObservedLease(a_lease("me", acquireTime="then"), 1.0)
    assert decide_step(observed, "me", 2.0) is LeaseStep.RENEW
    assert build_claim(observed, KEY, "me", TERMS, NOW)["spec"]["acquireTime"] == "then"


def test_a_lease_that_was_released_is_free_at_once() -> None:
    freed = build_resignation(ObservedLease(a_lease("me"), 1.0), KEY, NOW)
    assert decide_step(ObservedLease(freed, 1.0), "other", 1.0) is LeaseStep.TAKE


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None, "leaseDurationSeconds": None}])
def test_a_lease_that_names_none_is_free(spec: dict[str, Any]) -> None:
    assert decide_step(ObservedLease({"metadata": {}, "spec": spec}, 1.0), "me", 1.0) is LeaseStep.TAKE


def test_the_holder_stops_before_another_may_take_over() -> None:
    leading = LeadershipDeadline().renew(100.0, TERMS)
    assert leading.holds(109.9)
    assert not leading.holds(110.0)
    assert decide_step(ObservedLease(a_lease(), 100.0), "me", 115.0) is LeaseStep.WAIT


@pytest.mark.parametrize("wrong", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_would_let_two_lead_are_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must be longer"):
        LeaseTimings(*wrong)


async def test_of_many_exactly_one_leads_and_the_next_when_it_resigns() -> None:
    api, terms = FakeApi(), LeaseTimings(3, 2, 0.05)
    async with serving(api) as url, a_client(url) as client:
        elections = [Election(client, KEY, f"s{number}", terms, rng=Random(number)) for number in range(5)]
        tasks = [asyncio.create_task(election.run()) for election in elections]
        resigned: list[Election] = []
        for _ in range(len(elections)):
            leader = await wait_for_leader(elections)
            waiting = [election for election in elections if election is not leader and election not in resigned]
            expected = {f"s{elections.index(leader)} leads"}
            await eventually_async(lambda: {election.problem for election in waiting} <= expected)  # noqa: B023
            resigned.append(leader)
            tasks[elections.index(leader)].cancel()
            await leader.resign()
            assert not leader.is_leading
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert api.objects[LEASES.build_object_path(KEY)]["spec"]["leaseTransitions"] >= len(elections) - 1


async def wait_for_leader(elections: list[Election]) -> Election:
    def list_leaders() -> list[Election]:
        leaders = [election for election in elections if election.is_leading]
        assert len(leaders) <= 1
        return leaders

    await eventually_async(lambda: bool(list_leaders()))
    return list_leaders()[0]


async def test_a_leader_that_can_not_renew_stops_by_itself_and_begins_a_new_term_later() -> None:
    api, terms = FakeApi(), LeaseTimings(0.5, 0.3, 0.05)
    async with serving(api) as url, a_client(url) as client:
        election = Election(client, KEY, "me", terms)
        task = asyncio.create_task(election.run())
        await wait_for_leader([election])
        assert election.term_began.is_set()
        before = election.term
        api.fail(*["PUT /apis", "GET /apis"] * 20)
        await eventually_async(lambda: not election.is_leading)
        assert "can't be taken or renewed (the fault" in election.problem
        await wait_for_leader([election])
        assert election.term > before
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_we_lead_with_kube_scheduler_of_our_pod_while_its_lease_is_fresh() -> None:
    observed = ObservedLease(a_lease("pod-1_0b9d"), 100.0)
    assert derive_lead_end(observed, "pod-1", TERMS) == 110.0
    assert derive_lead_end(observed, "pod", TERMS) == 0, "another pod whose name begins so"
    assert derive_lead_end(ObservedLease(), "pod-1", TERMS) == 0


async def test_who_leads_with_kube_scheduler_stops_when_its_lease_moves_or_stands_still() -> None:
    api, path = FakeApi(), LEASES.build_object_path(KEY)
    async with serving(api) as url, a_client(url) as client:
        ours = ColocatedLeadership(client, KEY, "pod-1", LeaseTimings(3, 0.5, 0.05))
        task = asyncio.create_task(ours.run())
        await eventually_async(lambda: "can't be read" in ours.problem)
        api.put(path, a_lease("pod-1_a"))
        await eventually_async(lambda: ours.is_leading)
        assert (ours.term, ours.term_began.is_set(), ours.problem) == (1, True, "")
        await eventually_async(lambda: "has not been renewed for 0.5 s" in ours.problem)
        api.put(path, a_lease("pod-1_a", renewed="2026-11-21T03:00:01.000000Z"))
        await eventually_async(lambda: ours.term == 2)
        api.put(path, a_lease("pod-2_b"))
        await eventually_async(lambda: "is held by pod-2_b, not by a kube-scheduler in pod-1" in ours.problem)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def leading(api: FakeApi, terms: LeaseTimings, **how: Any) -> AsyncIterator[tuple[Election, asyncio.Task[None]]]:
    """An election that leads, and the task that renews its lease; the test stops both as the scheduler does."""
    async with serving(api) as url, a_client(url) as client:
        election = Election(client, KEY, "me", terms, **how)
        task = asyncio.create_task(election.run())
        await wait_for_leader([election])
        yield election, task


async def stop(election: Election, task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await election.resign()


def get_holder(api: FakeApi) -> str:
    return str(api.objects[LEASES.build_object_path(KEY)]["spec"]["holderIdentity"])


OFTEN, SELDOM = LeaseTimings(60, 50, 0.01), LeaseTimings(600, 500, 400)


async def test_a_lease_is_released_though_a_renewal_is_in_flight_when_it_stops() -> None:
    api = FakeApi()
    async with leading(api, OFTEN) as (election, task):
        before = api.version
        answer = api.hold_answer(f"PUT {LEASES.build_object_path(KEY)}")
        await eventually_async(lambda: api.version > before)
        stopping = asyncio.create_task(stop(election, task))
        await asyncio.sleep(0)
        answer.set()
        await stopping
        assert (get_holder(api), election.is_leading) == ("", False)


@pytest.mark.parametrize("last", ["first claim", "renewal"])
async def test_a_lease_is_released_though_the_last_write_is_never_answered(last: str) -> None:
    api, path = FakeApi(), LEASES.build_object_path(KEY)
    async with serving(api) as url, a_client(url) as client:
        election = Election(client, KEY, "me", OFTEN)
        answer = api.hold_answer(f"POST {path.rpartition('/')[0]}" if last == "first claim" else f"PUT {path}")
        task = asyncio.create_task(election.run())
        await eventually_async(lambda: path in api.objects and not api.held_answers)
        await stop(election, task)
        assert get_holder(api) == ""
        answer.set()


async def test_a_lease_is_released_though_the_answer_to_its_last_renewal_was_lost() -> None:
    api, path = FakeApi(), LEASES.build_object_path(KEY)
    async with leading(api, LeaseTimings(600, 500, 0.01)) as (election, task):
        api.lose_answer(f"PUT {path}")
        api.fail(*[f"GET {path}"] * 2)
        await eventually_async(lambda: not api.lost_answers)
        await stop(election, task)
        assert get_holder(api) == ""


async def test_a_lease_is_released_though_the_last_renewal_is_too_long_ago_to_lead_by_it() -> None:
    """A stall of the machine, or of its clock."""
    api, now = FakeApi(), [0.0]
    async with leading(api, SELDOM, clock=lambda: now[0]) as (election, task):
        now[0] = 550.0
        assert not election.is_leading
        await stop(election, task)
        assert get_holder(api) == ""


@pytest.mark.parametrize("status", [409, 503])
async def test_a_lease_is_released_at_the_second_try_where_the_first_is_refused(status: int) -> None:
    api = FakeApi()
    async with leading(api, SELDOM) as (election, task):
        api.fail(f"PUT {LEASES.build_object_path(KEY)}", status=status)
        await stop(election, task)
        assert get_holder(api) == ""


async def test_a_lease_that_somebody_edited_is_released_with_the_edit() -> None:
    api, path = FakeApi(), LEASES.build_object_path(KEY)
    async with leading(api, SELDOM) as (election, task):
        lease = api.objects[path]
        api.put(path, {**lease, "metadata": {"name": KEY.name, "labels": {"team": "a"}}})
        await stop(election, task)
        assert (get_holder(api), api.objects[path]["metadata"]["labels"]) == ("", {"team": "a"})


async def test_a_lease_that_another_has_taken_meanwhile_is_left_alone() -> None:
    api, path = FakeApi(), LEASES.build_object_path(KEY)
    async with leading(api, SELDOM) as (election, task):
        api.put(path, a_lease("other"))
        await stop(election, task)
        assert (get_holder(api), election.is_leading) == ("other", False)


async def test_a_lease_that_can_not_be_released_is_named_in_the_log_with_the_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, path = FakeApi(), LEASES.build_object_path(KEY)
    async with leading(api, SELDOM) as (election, task):
        api.fail(*[f"PUT {path}"] * 20, status=409)
        await stop(election, task)
        assert not election.is_leading
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line == (
        "lease kube-system/schedulerlog-scheduler was not released (the fault that was asked for: 409); "
        "another process may take it after 600 s"
    )


async def test_a_scheduler_that_only_waited_for_the_lease_writes_nothing_when_it_stops() -> None:
    api, path = FakeApi(), LEASES.build_object_path(KEY)
    api.put(path, a_lease("other"))
    async with serving(api) as url, a_client(url) as client:
        election = Election(client, KEY, "me", SELDOM)
        task = asyncio.create_task(election.run())
        await eventually_async(lambda: election.problem == "other leads")
        await stop(election, task)
    assert not [request for request in api.requests if request.startswith("PUT")]
