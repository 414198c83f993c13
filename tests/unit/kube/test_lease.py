"""Who leads: never two, and soon somebody."""

import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from kube.election import Election, Neighbour
from kube.lease import Leading, Seen, Step, Terms, claim, led_by_host, next_step, resignation
from kube.resources import LEASES, Key
from tests.unit.kube.fake_api import FakeApi, a_client, serving, until

KEY, TERMS, NOW = Key("kube-system", "schedulerlog-scheduler"), Terms(), datetime(2026, 11, 21, 3, 0, 0, 5, UTC)


def a_lease(holder: str = "other", renewed: str = "2026-11-21T02:59:59.000000Z", **spec: Any) -> dict[str, Any]:
    said = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15, "leaseTransitions": 3, **spec}
    return {"metadata": {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": "7"}, "spec": said}


def test_where_there_is_none_it_is_created() -> None:
    assert next_step(Seen(), "me", 0) is Step.CREATE
    assert claim(Seen(), KEY, "me", TERMS, NOW)["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-11-21T03:00:00.000005Z",
        "acquireTime": "2026-11-21T03:00:00.000005Z",
        "leaseTransitions": 0,
    }


def test_a_lease_is_over_when_it_was_seen_unchanged_for_its_duration_whatever_the_clocks_say() -> None:
    seen = Seen().next(a_lease(), 100.0)
    assert next_step(seen, "me", 115.0) is Step.WAIT
    assert next_step(seen.next(a_lease(), 115.1), "me", 115.1) is Step.TAKE
    renewed = seen.next(a_lease(renewed="2026-11-21T03:00:09.000000Z"), 110.0)
    assert next_step(renewed, "me", 120.0) is Step.WAIT


def test_taking_it_counts_a_transition_and_carries_the_version_that_was_read() -> None:
    taken = claim(Seen(a_lease(), 1.0), KEY, "me", TERMS, NOW)
    assert (taken["spec"]["holderIdentity"], taken["spec"]["leaseTransitions"]) == ("me", 4)
    assert taken["metadata"]["resourceVersion"] == "7"


def test_our_own_is_renewed_and_keeps_since_when_it_is_ours() -> None:
    seen = Seen(a_lease("me", acquireTime="then"), 1.0)
    assert next_step(seen, "me", 2.0) is Step.RENEW
    assert claim(seen, KEY, "me", TERMS, NOW)["spec"]["acquireTime"] == "then"


def test_a_lease_that_was_given_back_is_free_at_once() -> None:
    given_back = resignation(Seen(a_lease("me"), 1.0), KEY, NOW)
    assert next_step(Seen(given_back, 1.0), "other", 1.0) is Step.TAKE


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None, "leaseDurationSeconds": None}])
def test_a_lease_that_names_nobody_is_free(spec: dict[str, Any]) -> None:
    assert next_step(Seen({"metadata": {}, "spec": spec}, 1.0), "me", 1.0) is Step.TAKE


def test_the_holder_stops_before_another_may_take_over() -> None:
    leading = Leading().renewed(100.0, TERMS)
    assert leading.holds(109.9)
    assert not leading.holds(110.0)
    assert next_step(Seen(a_lease(), 100.0), "me", 115.0) is Step.WAIT


@pytest.mark.parametrize("wrong", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_would_let_two_lead_are_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must be longer"):
        Terms(*wrong)


async def test_of_many_exactly_one_leads_and_the_next_when_it_resigns() -> None:
    api, terms = FakeApi(), Terms(3, 2, 0.05)
    async with serving(api) as url, a_client(url) as client:
        elections = [Election(client, KEY, f"s{number}", terms, rng=Random(number)) for number in range(5)]
        tasks = [asyncio.create_task(each.run()) for each in elections]
        resigned: list[Election] = []
        for _ in range(len(elections)):
            leader = await the_leader(elections)
            await asyncio.sleep(2 * terms.retry)
            waiting = [each for each in elections if each is not leader and each not in resigned]
            assert {each.problem for each in waiting} <= {f"s{elections.index(leader)} leads"}
            resigned.append(leader)
            tasks[elections.index(leader)].cancel()
            await leader.resign()
            assert not leader.is_leading
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert api.objects[LEASES.item(KEY)]["spec"]["leaseTransitions"] >= len(elections) - 1


async def the_leader(elections: list[Election]) -> Election:
    def leading() -> list[Election]:
        found = [each for each in elections if each.is_leading]
        assert len(found) <= 1
        return found

    await until(lambda: bool(leading()))
    return leading()[0]


async def test_a_leader_that_can_not_renew_stops_by_itself_and_begins_a_new_term_later() -> None:
    api, terms = FakeApi(), Terms(0.5, 0.3, 0.05)
    async with serving(api) as url, a_client(url) as client:
        election = Election(client, KEY, "me", terms)
        task = asyncio.create_task(election.run())
        await the_leader([election])
        assert election.leads_anew.is_set()
        before = election.term
        api.fail(*["PUT /apis", "GET /apis"] * 20)
        await until(lambda: not election.is_leading)
        assert "can't be had (the fault" in election.problem
        await the_leader([election])
        assert election.term > before
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_we_lead_with_our_neighbour_while_its_lease_is_fresh() -> None:
    seen = Seen(a_lease("pod-1_0b9d"), 100.0)
    assert led_by_host(seen, "pod-1", TERMS) == 110.0
    assert led_by_host(seen, "pod", TERMS) == 0, "another pod whose name begins so"
    assert led_by_host(Seen(), "pod-1", TERMS) == 0


async def test_who_leads_with_kube_scheduler_stops_when_its_lease_moves_or_stands_still() -> None:
    api, path = FakeApi(), LEASES.item(KEY)
    async with serving(api) as url, a_client(url) as client:
        ours = Neighbour(client, KEY, "pod-1", Terms(3, 0.5, 0.05))
        task = asyncio.create_task(ours.run())
        await until(lambda: "can't be read" in ours.problem)
        api.put(path, a_lease("pod-1_a"))
        await until(lambda: ours.is_leading)
        assert (ours.term, ours.leads_anew.is_set(), ours.problem) == (1, True, "")
        await until(lambda: "has not been renewed for 0.5 s" in ours.problem)
        api.put(path, a_lease("pod-1_a", renewed="2026-11-21T03:00:01.000000Z"))
        await until(lambda: ours.term == 2)
        api.put(path, a_lease("pod-2_b"))
        await until(lambda: "is held by pod-2_b, not by one in pod-1" in ours.problem)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
