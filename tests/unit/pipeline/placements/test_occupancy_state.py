"""The documents that follow from what is said, whatever is read first, told again, or cut off by a kill."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.placements.input_decoder import BoundAttempt, Said, bind_of, said_in
from pipeline.placements.observation_dedup import KEPT, Known, Latest
from pipeline.placements.occupancy_queries import Stored, observed
from pipeline.placements.occupancy_state import Book, PodKey, thing_of
from pipeline.sinks.bulk import Document
from schemas.codec.chunking import split
from schemas.codec.records import Rejected, encode
from schemas.documents.placements import placement_of
from schemas.events import BindOutcome, NodeChecked, NodeRegistered, PickedDevice, PodObserved, PodRef
from schemas.indices import OBSERVATIONS, OCCUPANCY
from tests.support.builders.events import a_repetition, a_request, a_summary
from tests.support.stress import examples

NIGHT = datetime(2026, 11, 21, 23, 59, 30, tzinfo=UTC)
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NIGHT + timedelta(seconds=seconds)


def a_pod(name: str = "a", uid: str = "u1") -> PodRef:
    return PodRef(namespace="llm", name=name, uid=uid)


def seen(
    seconds: float, phase: str = "Running", node: str = "node1", pod: PodRef | None = None, **said: Any
) -> PodObserved:
    return PodObserved(pod=pod or a_pod(), observed_at=at(seconds), phase=phase, node=node, **said)


def bound(seconds: float, node: str = "node1", pod: PodRef | None = None, **said: Any) -> BoundAttempt:
    plain: dict[str, Any] = {
        "attempt_id": f"attempt-{seconds:g}-{node}", "pod": pod or a_pod(), "scheduler": "hami-scheduler",
        "started_at": at(seconds - 1), "version": 1, "requests": [a_request()], "chosen": node,
        "picked_devices": ["GPU-1"], "bind": BindOutcome(node=node, bound=True, ended_at=at(seconds)),
        "picked": [PickedDevice(container=0, uuid="GPU-1", model="A100", memory_mib=20480, cores_percent=25)],
    }  # fmt: skip
    return BoundAttempt.model_validate(plain | said)


class Store:
    """The index, as far as it matters: a greater version stays, what is there is not made again."""

    def __init__(self) -> None:
        self.documents: dict[str, Stored] = {}
        self.writes = 0

    def write(self, documents: Sequence[Document]) -> None:
        for each in documents:
            key = f"{each.index}/{each.id}"
            known = self.documents.get(key)
            if each.is_deletion:
                self.documents.pop(key, None)
            elif known is None or (each.version is not None and each.version >= known.version):
                self.documents[key] = Stored(each.index, each.id, each.version or 0, orjson.loads(each.source))
                self.writes += 1

    def of(self, alias: str, **terms: str) -> list[Stored]:
        mine = [each for each in self.documents.values() if each.index.startswith(alias)]
        mine = [each for each in mine if all(each.source.get(name) == value for name, value in terms.items())]
        return sorted(mine, key=lambda each: str(each.source["@timestamp"]), reverse=True)

    def load(self, book: Book, said: Said) -> None:
        thing = thing_of(said)
        if isinstance(thing, PodKey):
            about = {"namespace": thing.namespace, "pod": thing.name}
            book.load_pod(
                thing, self.of(OCCUPANCY.alias, **about), observed(_hits(self.of(OBSERVATIONS.alias, **about)))
            )
        else:
            book.load_node(thing, observed(_hits(self.of(OBSERVATIONS.alias, node=thing))))

    def said(self) -> dict[str, Any]:
        return {key: each.source for key, each in self.documents.items()}


def _hits(found: Sequence[Stored]) -> list[dict[str, Any]]:
    return [{"_id": each.id, "_source": each.source} for each in found]


def taken(all_said: Sequence[Said], store: Store | None = None, book: Book | None = None) -> Store:
    store, book = store or Store(), Book() if book is None else book
    for said in all_said:
        if book.lacks(thing_of(said)):
            store.load(book, said)
        store.write(book.take(said, NOW))
    return store


def stays(store: Store) -> list[tuple[str, str, float, float | None, str]]:
    """Day, node, from, until, ended by."""
    found = []
    for each in reversed(store.of(OCCUPANCY.alias)):
        stay = placement_of(each.id, each.source)
        assert not isinstance(stay, Rejected)
        until = (stay.ended_at - NIGHT).total_seconds() if stay.ended_at else None
        found.append((each.index[-2:], stay.node, (stay.started_at - NIGHT).total_seconds(), until, stay.ended_by))
    return found


def test_a_bind_and_an_end_make_a_stay_and_an_observation() -> None:
    store = taken([bound(0), seen(9, "Failed")])
    assert stays(store) == [("21", "node1", 0, 9, "Failed")]
    assert len(store.of(OBSERVATIONS.alias)) == 1


def test_a_stay_that_turns_out_to_have_begun_the_day_before_is_there_once() -> None:
    store = taken([seen(40), bound(0)])
    assert stays(store) == [("21", "node1", 0, None, "")]


def test_what_is_seen_again_as_it_was_is_one_observation() -> None:
    store = taken([seen(1), seen(2), seen(3, "Failed"), seen(4, "Failed"), seen(5)])
    assert [each.source["phase"] for each in store.of(OBSERVATIONS.alias)] == ["Running", "Failed", "Running"]


def a_registration(seconds: float, handshake: str = "Requesting_2026", memory_mib: int = 100) -> NodeRegistered:
    return NodeRegistered(
        node="node1", observed_at=at(seconds), registered=True, uuid=["GPU-1"], model=["A100"], mode=["hami-core"],
        index=[0], memory_mib=[memory_mib], cores_percent=[100], slots=[10], numa=[0], healthy=[True],
        handshake=handshake,
    )  # fmt: skip


def test_a_handshake_that_goes_on_is_no_news_one_that_breaks_off_is() -> None:
    told = [a_registration(0), a_registration(30, "Requesting_2027"), a_registration(60, "Deleted_2027")]
    assert len(taken(told).of(OBSERVATIONS.alias)) == 2


def test_registrations_of_two_schedulers_and_checks_stand_beside_each_other() -> None:
    checked = NodeChecked(node="node1", observed_at=at(2), scheduler="hami-scheduler", problems=[])
    other = a_registration(1).model_copy(update={"scheduler": "other"})
    assert len(taken([a_registration(0), other, checked, a_registration(3)]).of(OBSERVATIONS.alias)) == 3


def test_two_pods_on_one_card_are_a_finding_once_the_node_is_known() -> None:
    book = Book()
    over: list[Said] = [a_registration(-9, memory_mib=30000), bound(0), bound(5, pod=a_pod("b", "u2"))]
    taken(over, book=book)
    assert book.judge(at(9)) == []
    (finding,) = book.judge(at(20))
    assert (finding.pod.name, finding.numbers["memory_held_mib"]) == ("b", 40960)
    assert book.judge(at(30)) == []


def test_stays_that_are_only_known_from_the_index_count_too() -> None:
    store = taken([a_registration(-9, memory_mib=30000), bound(0)])
    book = Book()
    book.load_holdings(store.of(OCCUPANCY.alias))
    taken([bound(5, pod=a_pod("b", "u2"))], store, book)
    assert book.nodes_to_load() == ["node1"]
    store.load(book, a_registration(0))
    assert [finding.pod.name for finding in book.judge(at(20))] == ["b"]


def test_pods_that_nothing_is_said_of_leave_and_are_known_again() -> None:
    store, book = Store(), Book(most_pods=1)
    taken([bound(0)], store, book)
    taken([bound(1, pod=a_pod("b", "u2"))], store, book)
    book.trim()
    assert (len(book), book.lacks(PodKey("llm", "a"))) == (1, True)
    taken([seen(9, "Failed")], store, book)
    assert ("21", "node1", 0, 9, "Failed") in stays(store)


PODS = st.sampled_from([a_pod(), a_pod(uid="u2"), a_pod("b", "u3")])
NODES = st.sampled_from(["node1", "node2"])
SECONDS = st.integers(0, 60)
SAID = st.one_of(
    st.builds(bound, SECONDS, NODES, PODS),
    st.builds(seen, SECONDS, st.sampled_from(["Running", "Failed"]), NODES, PODS, deleted=st.booleans()),
    st.builds(a_registration, SECONDS, memory_mib=st.integers(1, 2)),
)


def in_turn(told: Sequence[Said]) -> list[Said]:
    """What is observed of a thing in the order of its times, binds wherever they come."""
    latest: dict[Any, datetime] = {}
    kept = []
    for said in told:
        if isinstance(said, PodObserved | NodeRegistered):
            if said.observed_at < latest.setdefault(thing_of(said), said.observed_at):
                continue
            latest[thing_of(said)] = said.observed_at
        kept.append(said)
    return kept


TOLD = st.lists(SAID, max_size=8).map(in_turn)


# Each: of how many records, how many documents are written, whether the records are acknowledged.
KILLS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6), st.booleans()), max_size=5)
FEW = settings(max_examples=examples(20))


@FEW
@given(TOLD, KILLS)
def test_killed_anywhere_and_read_again_the_documents_are_the_same(
    told: list[Said], kills: list[tuple[int, int, bool]]
) -> None:
    assert killed(told, kills).said() == taken(told).said()


@FEW
@given(st.lists(SAID, max_size=8), KILLS)
def test_killed_anywhere_the_stays_are_the_same_in_whatever_order_things_are_said(
    told: list[Said], kills: list[tuple[int, int, bool]]
) -> None:
    assert stays(killed(told, kills)) == stays(taken(told))


def killed(told: list[Said], kills: list[tuple[int, int, bool]]) -> Store:
    """What stands there after all of it was taken, by process after process that a kill ended."""
    store, place = Store(), 0
    for size, written, is_acknowledged in kills:
        batch = told[place : place + size]
        if is_acknowledged:
            taken(batch, store)
            place += size
        else:
            store.write(_documents(batch, store)[:written])
    return taken(told[place:], store)


@FEW
@given(st.lists(SAID, max_size=8))
def test_read_again_the_stays_are_as_they_were_in_whatever_order_things_are_said(told: list[Said]) -> None:
    store = taken(told)
    before = stays(store)
    taken(told, store)
    assert stays(store) == before


def _documents(told: Sequence[Said], store: Store) -> list[Document]:
    book, found = Book(), []
    for said in told:
        if book.lacks(thing_of(said)):
            store.load(book, said)
        found += book.take(said, NOW)
    return found


@FEW
@given(TOLD)
def test_read_from_the_beginning_again_nothing_is_written(told: list[Said]) -> None:
    store = taken(told)
    writes, documents = store.writes, dict(store.documents)
    taken(told, store)
    assert (store.writes, store.documents) == (writes, documents)


def test_what_comes_late_between_two_that_are_alike_hides_the_second_until_it_is_read_again() -> None:
    told = [a_registration(0, memory_mib=2), a_registration(2, memory_mib=2), a_registration(1, memory_mib=1)]
    store = taken(told)
    assert [each.source["@timestamp"][17:19] for each in store.of(OBSERVATIONS.alias)] == ["31", "30"]
    taken(told, store)
    assert [each.source["@timestamp"][17:19] for each in store.of(OBSERVATIONS.alias)] == ["32", "31", "30"]


def test_the_latest_sayings_are_kept_by_time_whenever_they_come() -> None:
    latest = Latest()
    assert latest.add(Known(at(5), "five", "x"))
    assert latest.add(Known(at(1), "one", "y"))
    assert not latest.add(Known(at(6), "six", "x"))
    assert not latest.add(Known(at(1), "one", "y"))
    assert [latest.add(Known(at(10 + number), str(number), str(number))) for number in range(KEPT)] == [True] * KEPT


def told(event: Any) -> Said | Rejected | None:
    record = encode(event)
    return said_in(record.value, record.headers, NOW)


BOUND: dict[str, Any] = {"bind": BindOutcome(node="node1", bound=True, ended_at=at(0)), "chosen": "node1"}


def test_a_summary_with_a_bind_is_read_in_its_first_part_alone() -> None:
    summary = a_summary([f"node{number}" for number in range(3_000)], **BOUND)
    first, *others = split(summary)
    assert others
    assert isinstance(told(first), BoundAttempt)
    assert [told(each) for each in others] == [None] * len(others)


@pytest.mark.parametrize(
    "event", [a_summary(), a_repetition(), a_summary(scheduler_message='a text with "bind":null in it')]
)
def test_what_binds_nothing_is_not_read(event: Any) -> None:
    assert told(event) is None


def test_a_text_that_looks_like_no_bind_hides_none() -> None:
    assert isinstance(told(a_summary(scheduler_message='"bind":null', **BOUND)), BoundAttempt)


def test_devices_of_a_bind_are_held_by_container_and_those_without_numbers_too() -> None:
    requests = [a_request(container="setup", init=True), a_request(container="main")]
    picked = [PickedDevice(container=1, uuid="GPU-1", model="A100", memory_mib=5, cores_percent=9)]
    held = bind_of(bound(0, requests=requests, picked=picked, picked_devices=["GPU-1", "GPU-2"])).held
    assert [(each.uuid, each.container, each.init, each.memory_mib, each.cores_percent) for each in held] == [
        ("GPU-1", "main", False, 5, 9),
        ("GPU-2", "", False, None, None),
    ]


def test_a_bind_to_another_node_than_the_chosen_one_holds_devices_that_nobody_knows() -> None:
    assert bind_of(bound(0, chosen="node2")).held == ()


def test_what_happens_far_in_the_future_is_rejected_with_its_time() -> None:
    said = told(seen(10**7))
    assert isinstance(said, Rejected)
    assert "2027-03" in str(said)
