"""Lists, watches and own writes come in any order; the store ends with what the cluster has."""

from contextlib import suppress

import hypothesis.strategies as st
import pytest
from hypothesis import given

from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.resources import Key
from runtime.kubernetes.store import Change, ObjectStore, PagedList, Removal, Update
from runtime.kubernetes.watch_events import Bookmark, Changed, Deleted, LineSplitter, decode_event
from schemas.json_types import Json


def a_pod(name: str, version: int, uid: str = "") -> Json:
    return {"metadata": {"name": name, "namespace": "n", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


def a_store(*objects: Json, version: int = 10) -> ObjectStore:
    store = ObjectStore()
    listing = PagedList(store)
    listing.add_page(objects)
    listing.finish(str(version))
    return store


def describe_changes(changes: list[Change]) -> list[str]:
    return [
        f"{change.obj['metadata']['name']}@{change.obj['metadata']['resourceVersion']}"
        if isinstance(change, Update)
        else f"-{change.ref.uid}"
        for change in changes
    ]


def test_a_list_reports_every_object_and_the_version_to_watch_from() -> None:
    store = ObjectStore()
    listing = PagedList(store)
    assert describe_changes(listing.add_page([a_pod("a", 3), a_pod("b", 5)])) == ["a@3", "b@5"]
    assert (listing.finish("9"), store.version, len(store)) == ([], "9", 2)


def test_a_second_list_reports_only_the_difference() -> None:
    store = a_store(a_pod("a", 3), a_pod("b", 5), a_pod("c", 6))
    listing = PagedList(store)
    assert describe_changes(listing.add_page([a_pod("a", 3), a_pod("b", 12)])) == ["b@12"]
    assert describe_changes(listing.finish("20")) == ["-uid-c"]


def test_a_page_of_an_older_list_does_not_take_back_what_the_watch_reported() -> None:
    store = a_store(a_pod("a", 3))
    listing = PagedList(store)
    store.apply_event(Changed(a_pod("a", 12)))
    store.apply_event(Changed(a_pod("new", 13)))
    assert listing.add_page([a_pod("a", 3)]) == []
    assert listing.finish("11") == []


def test_an_own_write_counts_at_once_and_its_echo_is_no_news() -> None:
    store = a_store(a_pod("a", 3))
    assert describe_changes(store.apply_object(a_pod("a", 12))) == ["a@12"]
    assert store.apply_event(Changed(a_pod("a", 11))) == []
    assert store.apply_event(Changed(a_pod("a", 12))) == []
    assert store.version == "12"


def test_an_own_write_of_a_pod_that_the_watch_does_not_know_yet_counts() -> None:
    store = a_store()
    assert describe_changes(store.apply_object(a_pod("a", 12))) == ["a@12"]
    assert store.apply_event(Changed(a_pod("a", 11))) == []


def test_the_answer_to_a_write_does_not_bring_back_what_was_deleted_meanwhile() -> None:
    store = a_store(a_pod("a", 3))
    assert describe_changes(store.apply_event(Deleted(a_pod("a", 13)))) == ["-uid-a"]
    assert store.apply_object(a_pod("a", 12)) == []


def test_an_object_that_left_the_selection_may_come_back() -> None:
    store = a_store(a_pod("a", 3))
    store.apply_event(Deleted(a_pod("a", 13)))
    assert describe_changes(store.apply_event(Changed(a_pod("a", 14)))) == ["a@14"]


def test_another_object_of_the_same_name_takes_the_place_of_the_first() -> None:
    store = a_store(a_pod("a", 3, uid="old"))
    assert describe_changes(store.apply_object(a_pod("a", 12, uid="new"))) == ["-old", "a@12"]
    assert store.apply_event(Deleted(a_pod("a", 11, uid="old"))) == []
    assert len(store) == 1


def test_a_bookmark_moves_the_version_to_watch_from() -> None:
    store = a_store()
    assert store.apply_event(Bookmark("77")) == []
    assert store.version == "77"


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Changed | Deleted], int]:
    """Events of three names, version by version, and the version of the first list."""
    events: list[Changed | Deleted] = []
    alive: dict[str, str] = {}
    for version in range(1, draw(st.integers(1, 25)) + 1):
        name = draw(st.sampled_from("abc"))
        if name in alive and draw(st.booleans()):
            events.append(Deleted(a_pod(name, version, alive.pop(name))))
        else:
            uid = alive.setdefault(name, f"{name}{version}")
            events.append(Changed(a_pod(name, version, uid)))
    return events, draw(st.integers(0, len(events)))


def build_objects(events: list[Changed | Deleted], version: int) -> dict[Key, Json]:
    """Return the objects as they are at a version."""
    objects: dict[Key, Json] = {}
    for event in events[:version]:
        key = Key("n", event.obj["metadata"]["name"])
        if isinstance(event, Deleted):
            objects.pop(key, None)
        else:
            objects[key] = event.obj
    return objects


@given(histories(), st.data())
def test_events_that_repeat_and_lists_in_between_end_in_the_true_state(
    history: tuple[list[Changed | Deleted], int], data: st.DataObject
) -> None:
    events, first = history
    store, objects = ObjectStore(), dict[Key, Json]()

    def take(changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Removal):
                assert objects.pop(change.ref.key)["metadata"]["uid"] == change.ref.uid
            else:
                objects[Key("n", change.obj["metadata"]["name"])] = change.obj

    def list_at(version: int) -> None:
        listing, items = PagedList(store), list(build_objects(events, version).values())
        half = len(items) // 2
        take(listing.add_page(items[:half]))
        take(listing.add_page(items[half:]))
        take(listing.finish(str(version)))

    list_at(first)
    position = first
    for what in data.draw(st.lists(st.sampled_from(["next", "list", "write", "again"]), max_size=30)):
        if what == "next" and position < len(events):
            take(store.apply_event(events[position]))
            position += 1
        elif what == "list":
            list_at(data.draw(st.integers(position, len(events))))
        elif what == "write":
            event = data.draw(st.sampled_from(events))
            if isinstance(event, Changed):
                take(store.apply_object(event.obj))
        elif what == "again":
            position = data.draw(st.integers(first, position))
    for event in events[position:]:
        take(store.apply_event(event))
    assert objects == build_objects(events, len(events))


def test_lines_come_out_whole_however_they_are_cut() -> None:
    text = b'{"a":1}\n\n{"b":2}\n{"c":3}\n{"rest"'
    for size in range(1, len(text)):
        lines = LineSplitter()
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        assert [line for part in parts for line in lines.split(part)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


def test_an_error_of_the_watch_carries_its_code() -> None:
    with pytest.raises(KubeApiError, match="too old") as failed:
        decode_event(
            b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version: 1 (9)"}}'
        )
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
def test_a_line_that_is_not_a_watch_event_is_an_error_of_the_server(line: bytes) -> None:
    with pytest.raises(KubeApiError) as failed:
        decode_event(line)
    assert failed.value.status == 500


@given(st.binary(max_size=60))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    with suppress(KubeApiError):
        decode_event(line)
