"""Attempts in a row that name the same episode are one item."""

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from api.http.cluster import Cluster
from api.index.attempts.episodes import AttemptOutline, group_runs, to_episode, to_outline, with_cached_attempt
from schemas.events import BindOutcome
from tests.support.builders.events import STARTED, a_summary

INDEX = "schedulerlog-attempts-2026.11.21"


def an_outline(number: int, episode: str = "attempt-0", status: str = "failed", index: str = "i") -> AttemptOutline:
    return AttemptOutline(f"attempt-{number}", episode, status, 1000 * number, index)


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["failed", "pending"])), max_size=40))
def test_every_attempt_is_in_exactly_one_episode_in_order(kinds: list[tuple[str, str]]) -> None:
    outlines = [an_outline(len(kinds) - index, *kind) for index, kind in enumerate(kinds)]
    runs = list(group_runs(outlines))
    assert [run.attempts for run in runs] == [len(list(group)) for _, group in groupby(kinds)]
    assert [name for run in runs for name in run.attempt_ids] == [outline.attempt_id for outline in outlines]
    for run in runs:
        assert (run.latest.attempt_id, run.first.attempt_id) == (run.attempt_ids[0], run.attempt_ids[-1])


def test_all_attempts_are_counted_and_a_hundred_ids_are_listed() -> None:
    [run] = group_runs(an_outline(number) for number in range(250, 0, -1))
    assert (run.attempts, len(run.attempt_ids)) == (250, 100)
    assert run.first.attempt_id == "attempt-1"


def test_the_attempt_in_memory_replaces_its_older_version() -> None:
    stored = [an_outline(3, status="pending"), an_outline(2)]
    newest = an_outline(3, status="succeeded", index="")
    assert [outline.status for outline in with_cached_attempt(stored, newest)] == ["succeeded", "failed"]


def test_the_attempt_in_memory_stands_first_when_the_index_does_not_show_it_yet() -> None:
    assert with_cached_attempt([an_outline(2)], newest := an_outline(3, index=""))[0] is newest


def test_the_outline_of_a_hit_has_what_distinguishes_episodes() -> None:
    hit = {
        "_index": INDEX,
        "_id": "a1",
        "fields": {"attempt_id": ["a1"], "episode": ["a0"], "status": ["failed"]},
        "sort": [1795257465123, "a1"],
    }
    assert to_outline(hit) == AttemptOutline("a1", "a0", "failed", 1795257465123, "schedulerlog-attempts-2026.11.21")


def test_an_episode_has_the_texts_of_its_latest_attempt() -> None:
    [run] = group_runs([an_outline(2), an_outline(1)])
    bind = BindOutcome(node="node2", bound=False, error="node node2 has been locked", ended_at=STARTED)
    latest = a_summary(bind=bind, ended_at=STARTED, chosen="node2", verdict=[0, 2], refused_by=[0, -1], refusal=[0, -1])
    answer = to_episode(
        Cluster("default"), run, latest, "2026-11-21T03:00:00.000000Z", ["node2: 8/8 NumaNotFit became fit"]
    )
    assert (answer.first_seen_at, answer.last_seen_at) == ("2026-11-21T03:00:00.000000Z", "2026-11-21T03:06:23.217054Z")
    assert answer.filter["status"] == "passed"
    assert answer.bind.summary == "node node2 has been locked"
    assert answer.reasons == ["BindingFailed", "CardInsufficientMemory"]
