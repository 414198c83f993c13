"""Changes that are found by reading a cluster again."""

from collections.abc import Callable, Iterator

from cli.client.problems import NotFound, Problem, Unreachable
from cli.client.transport import WatchedChange
from cli.direct.polled_changes import iterate_pod_changes, iterate_waiting_changes
from schemas.json_types import Json


def a_diagnosis(state: str, sentence: str) -> Json:
    return {"namespace": "ml", "name": "train", "state": state, "sentence": {"en": sentence}}


def replay(answers: list[Json | Problem]) -> Callable[[], Json | Problem]:
    remaining: Iterator[Json | Problem] = iter(answers)
    return lambda: next(remaining)


def list_changes(changes: Iterator[WatchedChange | Problem]) -> list[tuple[str, str, str]]:
    return [
        (change.kind, change.object["status"], change.object["filter"]["summary"] or change.object["bind"]["summary"])
        for change in changes
        if isinstance(change, WatchedChange)
    ]


def test_a_pod_has_a_change_for_each_new_state_until_it_is_deleted() -> None:
    refused, placed = a_diagnosis("refused", "No memory."), a_diagnosis("placed", "The pod is on node n0.")
    answers: list[Json | Problem] = [refused, refused, placed, NotFound("gone")]
    pauses: list[float] = []
    changes = iterate_pod_changes(replay(answers), has_initial=True, sleep=pauses.append)
    assert list_changes(changes) == [
        ("ADDED", "failed", "No memory"),
        ("MODIFIED", "succeeded", "The pod is on node n0"),
    ]
    assert len(pauses) == 3


def test_the_present_state_is_left_out_where_only_changes_count() -> None:
    answers: list[Json | Problem] = [a_diagnosis("refused", "a"), a_diagnosis("refused", "b"), Unreachable("down")]
    changes = list(iterate_pod_changes(replay(answers), has_initial=False, sleep=lambda _: None))
    assert isinstance(changes[-1], Unreachable)
    assert list_changes(iter(changes)) == [("MODIFIED", "failed", "b")]


def test_waiting_pods_come_change_and_go() -> None:
    def write_item(name: str, code: str) -> Json:
        return {"namespace": "ml", "name": name, "obstacle": {"code": code}, "reasons": [code]}

    answers: list[Json | Problem] = [
        {"items": [write_item("a", "X"), write_item("b", "X")]},
        {"items": [write_item("a", "Y"), write_item("c", "X")]},
        Unreachable("down"),
    ]
    changes = iterate_waiting_changes(replay(answers), has_initial=False, sleep=lambda _: None)
    rows = [(change.kind, change.object["name"]) for change in changes if isinstance(change, WatchedChange)]
    assert rows == [("MODIFIED", "a"), ("ADDED", "c"), ("DELETED", "b")]
