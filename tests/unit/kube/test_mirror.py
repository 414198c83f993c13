"""Lists, watches and own writes come in any order; what is told in the end is what there is."""

from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kube.errors import ApiError
from kube.resources import Key
from kube.store import Change, Listing, Mirror, Removal, Update
from kube.watch_events import Bookmark, Changed, Gone, Lines, read

Json = dict[str, Any]


def a_pod(name: str, version: int, uid: str = "") -> Json:
    return {"metadata": {"name": name, "namespace": "n", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


def a_mirror(*found: Json, at: int = 10) -> Mirror:
    mirror = Mirror()
    listing = Listing(mirror)
    listing.page(found)
    listing.end(str(at))
    return mirror


def told(changes: list[Change]) -> list[str]:
    return [
        f"{change.found['metadata']['name']}@{change.found['metadata']['resourceVersion']}"
        if isinstance(change, Update)
        else f"-{change.ref.uid}"
        for change in changes
    ]


def test_a_list_tells_every_object_and_where_to_go_on() -> None:
    mirror = Mirror()
    listing = Listing(mirror)
    assert told(listing.page([a_pod("a", 3), a_pod("b", 5)])) == ["a@3", "b@5"]
    assert (listing.end("9"), mirror.version, len(mirror)) == ([], "9", 2)


def test_a_second_list_tells_the_difference_only() -> None:
    mirror = a_mirror(a_pod("a", 3), a_pod("b", 5), a_pod("c", 6))
    listing = Listing(mirror)
    assert told(listing.page([a_pod("a", 3), a_pod("b", 12)])) == ["b@12"]
    assert told(listing.end("20")) == ["-uid-c"]


def test_a_page_of_an_older_list_does_not_take_back_what_the_watch_told() -> None:
    mirror = a_mirror(a_pod("a", 3))
    listing = Listing(mirror)
    mirror.notice(Changed(a_pod("a", 12)))
    mirror.notice(Changed(a_pod("new", 13)))
    assert listing.page([a_pod("a", 3)]) == []
    assert listing.end("11") == []


def test_an_own_write_counts_at_once_and_its_echo_is_no_news() -> None:
    mirror = a_mirror(a_pod("a", 3))
    assert told(mirror.take(a_pod("a", 12))) == ["a@12"]
    assert mirror.notice(Changed(a_pod("a", 11))) == []
    assert mirror.notice(Changed(a_pod("a", 12))) == []
    assert mirror.version == "12"


def test_an_own_write_of_a_pod_that_the_watch_does_not_know_yet_counts() -> None:
    mirror = a_mirror()
    assert told(mirror.take(a_pod("a", 12))) == ["a@12"]
    assert mirror.notice(Changed(a_pod("a", 11))) == []


def test_the_answer_to_a_write_does_not_bring_back_what_was_deleted_meanwhile() -> None:
    mirror = a_mirror(a_pod("a", 3))
    assert told(mirror.notice(Gone(a_pod("a", 13)))) == ["-uid-a"]
    assert mirror.take(a_pod("a", 12)) == []


def test_an_object_that_left_the_selection_may_come_back() -> None:
    mirror = a_mirror(a_pod("a", 3))
    mirror.notice(Gone(a_pod("a", 13)))
    assert told(mirror.notice(Changed(a_pod("a", 14)))) == ["a@14"]


def test_another_object_of_the_same_name_takes_the_place_of_the_first() -> None:
    mirror = a_mirror(a_pod("a", 3, uid="old"))
    assert told(mirror.take(a_pod("a", 12, uid="new"))) == ["-old", "a@12"]
    assert mirror.notice(Gone(a_pod("a", 11, uid="old"))) == []
    assert len(mirror) == 1


def test_a_bookmark_moves_the_place_to_go_on_from() -> None:
    mirror = a_mirror()
    assert mirror.notice(Bookmark("77")) == []
    assert mirror.version == "77"


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Changed | Gone], int]:
    """What really happens to three names, by version; and where a first list was taken."""
    happened: list[Changed | Gone] = []
    alive: dict[str, str] = {}
    for version in range(1, draw(st.integers(1, 25)) + 1):
        name = draw(st.sampled_from("abc"))
        if name in alive and draw(st.booleans()):
            happened.append(Gone(a_pod(name, version, alive.pop(name))))
        else:
            uid = alive.setdefault(name, f"{name}{version}")
            happened.append(Changed(a_pod(name, version, uid)))
    return happened, draw(st.integers(0, len(happened)))


def at(happened: list[Changed | Gone], version: int) -> dict[Key, Json]:
    """The objects as they are at a version."""
    found: dict[Key, Json] = {}
    for said in happened[:version]:
        key = Key("n", said.found["metadata"]["name"])
        if isinstance(said, Gone):
            found.pop(key, None)
        else:
            found[key] = said.found
    return found


@given(histories(), st.data())
def test_whatever_is_repeated_late_or_listed_between_the_end_is_the_truth(
    history: tuple[list[Changed | Gone], int], data: st.DataObject
) -> None:
    happened, first = history
    mirror, known = Mirror(), dict[Key, Json]()

    def take(changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Removal):
                assert known.pop(change.ref.key)["metadata"]["uid"] == change.ref.uid
            else:
                known[Key("n", change.found["metadata"]["name"])] = change.found

    def list_at(version: int) -> None:
        listing, items = Listing(mirror), list(at(happened, version).values())
        half = len(items) // 2
        take(listing.page(items[:half]))
        take(listing.page(items[half:]))
        take(listing.end(str(version)))

    list_at(first)
    place = first
    for what in data.draw(st.lists(st.sampled_from(["next", "list", "write", "again"]), max_size=30)):
        if what == "next" and place < len(happened):
            take(mirror.notice(happened[place]))
            place += 1
        elif what == "list":
            list_at(data.draw(st.integers(place, len(happened))))
        elif what == "write":
            said = data.draw(st.sampled_from(happened))
            if isinstance(said, Changed):
                take(mirror.take(said.found))
        elif what == "again":
            place = data.draw(st.integers(first, place))
    for said in happened[place:]:
        take(mirror.notice(said))
    assert known == at(happened, len(happened))


def test_lines_come_out_whole_however_they_are_cut() -> None:
    text = b'{"a":1}\n\n{"b":2}\n{"c":3}\n{"rest"'
    for size in range(1, len(text)):
        lines = Lines()
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        assert [line for part in parts for line in lines.feed(part)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_an_error_of_the_watch_carries_its_code() -> None:
    with pytest.raises(ApiError, match="too old") as failed:
        read(b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version: 1 (9)"}}')
    assert failed.value.is_expired


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"[]",
        b"null",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":{}}',
        b'{"type":"NEWS","object":{"metadata":{"resourceVersion":"1"}}}',
        b'{"type":"ERROR","object":7}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_notice_is_an_error_of_the_server(line: bytes) -> None:
    with pytest.raises(ApiError) as failed:
        read(line)
    assert failed.value.status == 500


@given(st.binary(max_size=60))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    with suppress(ApiError):
        read(line)
