"""Attempts in a row with the same verdicts are one episode."""

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from api.index.episodes import AttemptOutline, episode_of_run, group_runs, outline_of_hit, with_cached_attempt
from schemas.events import BindOutcome
from tests.support.builders.events import STARTED, a_summary

INDEX = "schedulerlog-attempts-2026.11.21"


def a_try(number: int, digest: str = "d1", status: str = "failed", index: str = "i") -> AttemptOutline:
    return AttemptOutline(f"attempt-{number}", digest, status, 1000 * number, index)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["failed", "pending"])), max_size=40))
def test_every_attempt_is_in_exactly_one_episode_in_order(kinds: list[tuple[str, str]]) -> None:
    tries = [a_try(len(kinds) - place, *kind) for place, kind in enumerate(kinds)]
    runs = list(group_runs(tries))
    assert [run.attempts for run in runs] == [len(list(group)) for _, group in groupby(kinds)]
    assert [name for run in runs for name in run.attempt_ids] == [each.attempt_id for each in tries]
    for run in runs:
        assert (run.latest.attempt_id, run.first.attempt_id) == (run.attempt_ids[0], run.attempt_ids[-1])


def test_at_most_a_hundred_ids_are_listed_of_all_that_are_counted() -> None:
    [run] = group_runs(a_try(number) for number in range(250, 0, -1))
    assert (run.attempts, len(run.attempt_ids)) == (250, 100)
    assert run.first.attempt_id == "attempt-1"


def test_the_attempt_in_memory_takes_the_place_of_its_older_telling() -> None:
    stored = [a_try(3, status="pending"), a_try(2)]
    newest = a_try(3, status="succeeded", index="")
    assert [each.status for each in with_cached_attempt(stored, newest)] == ["succeeded", "failed"]


def test_the_attempt_in_memory_stands_first_when_the_index_does_not_show_it_yet() -> None:
    assert with_cached_attempt([a_try(2)], newest := a_try(3, index=""))[0] is newest


def test_a_hit_says_what_tells_episodes_apart() -> None:
    hit = {
        "_index": INDEX,
        "_id": "a1",
        "fields": {"attempt_id": ["a1"], "verdict_digest": ["ff"], "status": ["failed"]},
        "sort": [1795257465123, "a1"],
    }
    assert outline_of_hit(hit) == AttemptOutline(
        "a1", "ff", "failed", 1795257465123, "schedulerlog-attempts-2026.11.21"
    )


def test_the_latest_attempt_speaks_for_the_episode() -> None:
    [run] = group_runs([a_try(2), a_try(1)])
    bind = BindOutcome(node="node2", bound=False, error="node node2 has been locked", ended_at=STARTED)
    latest = a_summary(bind=bind, ended_at=STARTED, chosen="node2", verdict=[0, 2], refused_by=[0, -1], refusal=[0, -1])
    told = episode_of_run(run, latest, "2026-11-21T03:00:00.000000Z", ["node2: 8/8 NumaNotFit became fit"])
    assert (told.first_seen_at, told.last_seen_at) == ("2026-11-21T03:00:00.000000Z", "2026-11-21T03:06:23.217054Z")
    assert told.filter["status"] == "passed"
    assert told.bind.summary == "node node2 has been locked"
    assert told.reasons == ["CardInsufficientMemory"]
