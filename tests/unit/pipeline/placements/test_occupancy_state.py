"""The documents that follow from inputs, in whatever order they are read, repeated, or interrupted by a kill."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.summaries.node_history import NodeKey
from pipeline.placements.input_decoder import BoundAttempt, PlacementInput, RefusedAgain, decode_input, to_bind_fact
from pipeline.placements.observation_dedup import REMEMBERED, ObservationDigest, RecentObservations
from pipeline.placements.occupancy_queries import StoredPlacement, decode_forecasts, decode_observed
from pipeline.placements.occupancy_state import OccupancyState
from pipeline.placements.subjects import PodKey, SchedulerKey, WorkloadKey, get_subject
from pipeline.sinks.bulk import Document
from schemas.codec.chunking import split
from schemas.codec.records import Rejected, encode
from schemas.documents.forecasts import FORECAST_KIND
from schemas.documents.placements import read_placement
from schemas.events import (
    BindOutcome,
    DeviceAllocation,
    NodeChecked,
    NodeRegistered,
    ObjectProblem,
    Owner,
    PickedDevice,
    PodDescription,
    PodObserved,
    PodRef,
    PodWait,
    SchedulerObserved,
    WorkloadObserved,
)
from schemas.events.schedulers import compute_settings_digest
from schemas.forecasts import StartForecast
from schemas.indices import OBSERVATIONS, OCCUPANCY
from tests.support.builders.events import a_repetition, a_request, a_summary
from tests.support.stress import count_examples

NIGHT = datetime(2026, 10, 31, 23, 59, 30, tzinfo=UTC)
"""Indices are of months."""
NOW = datetime(2026, 11, 2, tzinfo=UTC)


def to_time(seconds: float) -> datetime:
    return NIGHT + timedelta(seconds=seconds)


def a_pod(name: str = "a", uid: str = "u1") -> PodRef:
    return PodRef(namespace="llm", name=name, uid=uid)


def an_observation(
    seconds: float, phase: str = "Running", node: str = "node1", pod: PodRef | None = None, **fields: Any
) -> PodObserved:
    return PodObserved(
        cluster="default", pod=pod or a_pod(), observed_at=to_time(seconds), phase=phase, node=node, **fields
    )


def bound(seconds: float, node: str = "node1", pod: PodRef | None = None, **fields: Any) -> BoundAttempt:
    plain: dict[str, Any] = {
        "cluster": "default",
        "attempt_id": f"attempt-{seconds:g}-{node}", "pod": pod or a_pod(), "scheduler": "hami-scheduler",
        "started_at": to_time(seconds - 1), "version": 1, "requests": [a_request()], "chosen": node,
        "picked_devices": ["GPU-1"], "bind": BindOutcome(node=node, bound=True, ended_at=to_time(seconds)),
        "picked": [PickedDevice(container=0, uuid="GPU-1", model="A100", memory_mib=20480, cores_percent=25)],
    }  # fmt: skip
    return BoundAttempt.model_validate(plain | fields)


def a_forecast(seconds: float, pod: PodRef, missing: str = "") -> StartForecast:
    """Build a forecast of a start 10 to 30 seconds later, or without an interval."""
    interval = {} if missing else {"earliest": to_time(seconds + 10), "latest": to_time(seconds + 30)}
    fields: dict[str, Any] = {
        "missing": missing,
        "basis": "" if missing else "shape",
        "after": [],
        "obstacle": "CardInsufficientMemory",
    }
    return StartForecast.model_validate(
        {"cluster": "default", "pod": pod, "given_at": to_time(seconds), **fields, **interval}
    )


def a_repeated_refusal(seconds: float, pod: PodRef | None = None, missing: str = "") -> RefusedAgain:
    """Build a refusal for which a forecast was made."""
    pod = pod or a_pod()
    plain = a_repetition(pod=pod, started_at=to_time(seconds), wait=a_wait()).model_dump()
    return RefusedAgain.model_validate(plain | {"forecast": a_forecast(seconds, pod, missing)})


def a_wait(**fields: Any) -> PodWait:
    plain: dict[str, Any] = {
        "code": "CardInsufficientMemory", "layer": "nodes", "devices": 1, "models": ["A100"], "pools": [],
        "nearest_nodes": ["node1"], "reasons": {"CardInsufficientMemory": 1}, "missing_devices": 1,
    }  # fmt: skip
    return PodWait.model_validate(plain | fields)


class Store:
    """An index in memory: it keeps the greatest version, and a document without one as it was first written."""

    def __init__(self) -> None:
        self.documents: dict[str, StoredPlacement] = {}
        self.writes = 0

    def write(self, documents: Sequence[Document]) -> None:
        for document in documents:
            key = f"{document.index}/{document.id}"
            stored = self.documents.get(key)
            if document.is_deletion:
                self.documents.pop(key, None)
            elif stored is None or (document.version is not None and document.version >= stored.version):
                self.documents[key] = StoredPlacement(
                    document.index, document.id, document.version or 0, orjson.loads(document.source)
                )
                self.writes += 1

    def search(self, alias: str, **terms: str) -> list[StoredPlacement]:
        mine = [document for document in self.documents.values() if document.index.startswith(alias)]
        mine = [hit for hit in mine if all(hit.source.get(name) == value for name, value in terms.items())]
        return sorted(mine, key=lambda hit: str(hit.source["@timestamp"]), reverse=True)

    def load(self, state: OccupancyState, item: PlacementInput) -> None:
        subject = get_subject(item)
        if isinstance(subject, PodKey):
            terms = {"cluster": subject.cluster, "namespace": subject.namespace, "pod": subject.name}
            state.load_pod(
                subject,
                self.search(OCCUPANCY.alias, **terms),
                decode_observed(_to_hits(self.search(OBSERVATIONS.alias, **terms))),
                decode_forecasts(_to_hits(self.search(OBSERVATIONS.alias, kind=FORECAST_KIND, **terms))),
            )
        elif isinstance(subject, WorkloadKey):
            hits = self.search(
                OBSERVATIONS.alias, kind="workload-observed", cluster=subject.cluster, workload=subject.name
            )
            state.load_observed(subject, decode_observed(_to_hits(hits)))
        elif isinstance(subject, SchedulerKey):
            hits = self.search(
                OBSERVATIONS.alias, kind="scheduler-observed", cluster=subject.cluster, scheduler=subject.name
            )
            state.load_observed(subject, decode_observed(_to_hits(hits)))
        else:
            state.load_node(
                subject,
                decode_observed(_to_hits(self.search(OBSERVATIONS.alias, cluster=subject.cluster, node=subject.name))),
            )

    def get_sources(self) -> dict[str, Any]:
        return {key: document.source for key, document in self.documents.items()}


def _to_hits(placements: Sequence[StoredPlacement]) -> list[dict[str, Any]]:
    return [{"_id": document.id, "_source": document.source} for document in placements]


def take_inputs(
    inputs: Sequence[PlacementInput], store: Store | None = None, state: OccupancyState | None = None
) -> Store:
    store, state = store or Store(), OccupancyState() if state is None else state
    for item in inputs:
        if state.is_missing(get_subject(item)):
            store.load(state, item)
        store.write(state.apply(item, NOW))
    return store


def list_placements(store: Store) -> list[tuple[str, str, float, float | None, str]]:
    """List the month of the index, node, start, end, and what ended it."""
    rows = []
    for hit in reversed(store.search(OCCUPANCY.alias)):
        placement = read_placement(hit.id, hit.source)
        assert not isinstance(placement, Rejected)
        until = (placement.ended_at - NIGHT).total_seconds() if placement.ended_at else None
        rows.append(
            (
                hit.index[-5:-3],
                placement.node,
                (placement.started_at - NIGHT).total_seconds(),
                until,
                placement.ended_by,
            )
        )
    return rows


def test_a_bind_and_an_end_give_a_placement_and_an_observation() -> None:
    store = take_inputs([bound(0), an_observation(9, "Failed")])
    assert list_placements(store) == [("10", "node1", 0, 9, "Failed")]
    assert len(store.search(OBSERVATIONS.alias)) == 1


def test_a_placement_that_turns_out_to_have_begun_the_month_before_has_one_document() -> None:
    store = take_inputs([an_observation(40), bound(0)])
    assert list_placements(store) == [("10", "node1", 0, None, "")]


def test_an_unchanged_state_is_observed_once() -> None:
    store = take_inputs(
        [
            an_observation(1),
            an_observation(2),
            an_observation(3, "Failed"),
            an_observation(4, "Failed"),
            an_observation(5),
        ]
    )
    assert [hit.source["phase"] for hit in store.search(OBSERVATIONS.alias)] == ["Running", "Failed", "Running"]


def a_registration(seconds: float, handshake: str = "Requesting_2026", memory_mib: int = 100) -> NodeRegistered:
    return NodeRegistered(cluster="default",
        node="node1", observed_at=to_time(seconds), registered=True, uuid=["GPU-1"], model=["A100"], mode=["hami-core"],
        index=[0], memory_mib=[memory_mib], cores_percent=[100], slots=[10], numa=[0], healthy=[True],
        handshake=handshake,
    )  # fmt: skip


def test_a_renewed_handshake_is_not_a_change_a_deleted_one_is() -> None:
    inputs = [a_registration(0), a_registration(30, "Requesting_2027"), a_registration(60, "Deleted_2027")]
    assert len(take_inputs(inputs).search(OBSERVATIONS.alias)) == 2


def test_registrations_of_two_schedulers_and_checks_are_observed_separately() -> None:
    checked = NodeChecked(
        cluster="default", node="node1", observed_at=to_time(2), scheduler="hami-scheduler", problems=[]
    )
    other = a_registration(1).model_copy(update={"scheduler": "other"})
    assert len(take_inputs([a_registration(0), other, checked, a_registration(3)]).search(OBSERVATIONS.alias)) == 3


def a_failure(seconds: float, message: str = "exceeded quota", name: str = "train", **fields: Any) -> WorkloadObserved:
    problem = ObjectProblem(reason="FailedCreate", message=message, at=to_time(seconds), reported_by="job-controller")
    job = Owner(kind="Job", name=name)
    plain: dict[str, Any] = {"cluster": "default", "namespace": "llm", "workload": job, "observed_at": to_time(seconds)}
    return WorkloadObserved.model_validate(plain | {"problem": problem} | fields)


def observe_settings(seconds: float, policy: str, **fields: Any) -> SchedulerObserved:
    plain: dict[str, Any] = {"cluster": "default", "scheduler": "hami-scheduler", "observed_at": to_time(seconds)}
    digest = compute_settings_digest("HAMi", "2.10.0", {"policy": policy})
    facts = {"settings": {"policy": policy}, "settings_digest": digest}
    return SchedulerObserved.model_validate(plain | facts | fields)


def test_a_workload_that_fails_again_for_the_same_cause_is_observed_once() -> None:
    inputs = [a_failure(0), a_failure(10), a_failure(20, "denied by a webhook"), a_failure(5, name="other")]
    store = take_inputs(inputs)
    assert sorted(hit.source["text"] for hit in store.search(OBSERVATIONS.alias)) == [
        "default/llm/Job/other FailedCreate exceeded quota job-controller",
        "default/llm/Job/train FailedCreate denied by a webhook job-controller",
        "default/llm/Job/train FailedCreate exceeded quota job-controller",
    ]


def test_a_scheduler_that_starts_again_is_observed_when_its_settings_have_changed() -> None:
    inputs: list[PlacementInput] = [
        observe_settings(0, "binpack", instance="pod-1"),
        observe_settings(60, "binpack", instance="pod-2"),
        observe_settings(120, "spread", instance="pod-3"),
        observe_settings(120, "binpack", cluster="west"),
    ]
    store = take_inputs(inputs)
    assert [(hit.source["cluster"], hit.source["instance"]) for hit in store.search(OBSERVATIONS.alias)] in (
        [("default", "pod-3"), ("west", ""), ("default", "pod-1")],
        [("west", ""), ("default", "pod-3"), ("default", "pod-1")],
    )


def test_a_problem_of_a_pod_that_is_reported_again_is_no_change() -> None:
    def a_broken_pod(seconds: float) -> PodObserved:
        problem = ObjectProblem(reason="CreateContainerError", message="no device", at=to_time(seconds))
        return an_observation(seconds, "Pending", problems=[problem])

    assert len(take_inputs([a_broken_pod(1), a_broken_pod(2), an_observation(3)]).search(OBSERVATIONS.alias)) == 2


CARRIED = DeviceAllocation(uuid="GPU-1", container="worker", memory_mib=20480, cores_percent=25)


def test_a_pod_from_before_the_installation_holds_the_devices_that_it_carries() -> None:
    state = OccupancyState()
    store = take_inputs([a_registration(-9, memory_mib=30000), an_observation(0, allocations=[CARRIED])], state=state)
    (document,) = store.search(OCCUPANCY.alias)
    placement = read_placement(document.id, document.source)
    assert not isinstance(placement, Rejected)
    assert (placement.attempt_id, placement.allocations) == ("", [CARRIED])
    # It counts together with what a scheduler of ours places beside it, also after a restart.
    take_inputs([bound(5, pod=a_pod("b", "u2"))], store, state)
    (finding,) = state.find_overcommitments(to_time(40))
    assert (finding.pod.name, finding.numbers["memory_held_mib"]) == ("b", 40960)
    assert "no bind is known" in finding.evidence[0]
    again = OccupancyState()
    again.load_holdings(store.search(OCCUPANCY.alias))
    assert len(again.holdings) == 2


def test_pods_that_overcommit_a_device_without_any_attempt_are_no_finding() -> None:
    state = OccupancyState()
    other = an_observation(1, pod=a_pod("b", "u2"), allocations=[CARRIED])
    take_inputs([a_registration(-9, memory_mib=30000), an_observation(0, allocations=[CARRIED]), other], state=state)
    assert state.find_overcommitments(to_time(40)) == []


DESCRIPTION = PodDescription(created_at=to_time(-90), owners=[Owner(kind="Job", name="train")])


def take_waits(state: OccupancyState) -> list[tuple[str, str, float]]:
    return [(wait.kind, wait.namespace, wait.seconds) for wait in state.waits.take()]


def test_every_wait_is_measured_once_whatever_is_read_again() -> None:
    store, state = Store(), OccupancyState()
    soon = to_time(60)
    placed = bound(0, description=DESCRIPTION)
    started = an_observation(30, started_at=to_time(20), description=DESCRIPTION)
    for item in (placed, placed, started, an_observation(40, "Succeeded", started_at=to_time(20))):
        if state.is_missing(get_subject(item)):
            store.load(state, item)
        store.write(state.apply(item, soon))
    assert take_waits(state) == [("placement", "llm", 90), ("start", "llm", 110)]
    restarted = OccupancyState()
    for item in (placed, started):
        if restarted.is_missing(get_subject(item)):
            store.load(restarted, item)
        restarted.apply(item, soon)
    assert take_waits(restarted) == []


def test_waits_that_ended_long_ago_are_not_measured() -> None:
    state = OccupancyState()
    take_inputs([an_observation(0, description=DESCRIPTION, started_at=to_time(0))], state=state)
    assert take_waits(state) == []


def test_what_is_known_of_a_pod_before_it_is_bound_is_in_its_placement() -> None:
    store = take_inputs(
        [
            an_observation(0, "Pending", "", description=DESCRIPTION),
            bound(9, waited_for=["NumaNotFit"], obstacle="NumaNotFit"),
        ]
    )
    (document,) = store.search(OCCUPANCY.alias)
    assert (document.source["workload"], document.source["placement_seconds"]) == ("Job/train", 99)
    assert document.source["obstacle"] == "NumaNotFit"
    assert (document.source["waited_for"], document.source["first_judged_at"]) == (
        ["NumaNotFit"],
        "2026-10-31T23:59:38.000000Z",
    )


def test_two_pods_on_one_device_are_one_finding_once_the_node_is_known() -> None:
    state = OccupancyState()
    inputs: list[PlacementInput] = [a_registration(-9, memory_mib=30000), bound(0), bound(5, pod=a_pod("b", "u2"))]
    take_inputs(inputs, state=state)
    assert state.find_overcommitments(to_time(9)) == []
    (finding,) = state.find_overcommitments(to_time(20))
    assert (finding.pod.name, finding.numbers["memory_held_mib"]) == ("b", 40960)
    assert state.find_overcommitments(to_time(30)) == []


def test_placements_of_pods_that_are_not_in_memory_count_too() -> None:
    store = take_inputs([a_registration(-9, memory_mib=30000), bound(0)])
    state = OccupancyState()
    state.load_holdings(store.search(OCCUPANCY.alias))
    take_inputs([bound(5, pod=a_pod("b", "u2"))], store, state)
    assert state.list_nodes_to_load() == [NodeKey("default", "node1")]
    store.load(state, a_registration(0))
    assert [finding.pod.name for finding in state.find_overcommitments(to_time(20))] == ["b"]


def test_pods_without_an_input_for_longest_leave_memory_and_are_loaded_again() -> None:
    store, state = Store(), OccupancyState(max_pods=1)
    take_inputs([bound(0)], store, state)
    take_inputs([bound(1, pod=a_pod("b", "u2"))], store, state)
    state.trim()
    assert (len(state), state.is_missing(PodKey("default", "llm", "a"))) == (1, True)
    take_inputs([an_observation(9, "Failed")], store, state)
    assert ("10", "node1", 0, 9, "Failed") in list_placements(store)


PODS = st.sampled_from([a_pod(), a_pod(uid="u2"), a_pod(uid=""), a_pod("b", "u3")])
NODES = st.sampled_from(["node1", "node2"])
SECONDS = st.integers(0, 60)
DESCRIPTIONS = st.sampled_from([None, DESCRIPTION, PodDescription(queue="team-a")])
INPUT = st.one_of(
    st.builds(bound, SECONDS, NODES, PODS, description=DESCRIPTIONS),
    st.builds(
        an_observation,
        SECONDS,
        st.sampled_from(["Running", "Failed"]),
        NODES,
        PODS,
        deleted=st.booleans(),
        description=DESCRIPTIONS,
        allocations=st.sampled_from([[], [CARRIED]]),
        started_at=st.sampled_from([None, to_time(3)]),
    ),
    st.builds(a_repeated_refusal, SECONDS, st.sampled_from([a_pod(), a_pod(uid="u2")]), st.sampled_from(["", "order"])),
    st.builds(a_failure, SECONDS, st.sampled_from(["quota", "webhook"])),
    st.builds(observe_settings, SECONDS, st.sampled_from(["binpack", "spread"])),
    st.builds(a_registration, SECONDS, memory_mib=st.integers(1, 2)),
)


def select_in_order(inputs: Sequence[PlacementInput]) -> list[PlacementInput]:
    """Select the observations of each subject and the forecasts for each pod in the order of their times.

    A forecast has the time at which it is made, and no two for one pod are made at once. Attempts may be anywhere.
    """
    latest: dict[Any, datetime] = {}
    selected = []
    for item in inputs:
        if isinstance(item, RefusedAgain):
            assert item.forecast
            key, time = ("forecast", item.pod.uid), item.forecast.given_at
            if key in latest and time <= latest[key]:
                continue
            latest[key] = time
        elif not isinstance(item, BoundAttempt):
            if item.observed_at < latest.setdefault(get_subject(item), item.observed_at):
                continue
            latest[get_subject(item)] = item.observed_at
        selected.append(item)
    return selected


INPUTS = st.lists(INPUT, max_size=8).map(select_in_order)


# Of how many records, how many documents are written before the kill, and whether the offsets are committed.
KILLS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6), st.booleans()), max_size=5)
FEW = settings(max_examples=count_examples(10))


@FEW
@given(INPUTS, KILLS)
def test_killed_anywhere_and_read_again_the_documents_are_the_same(
    inputs: list[PlacementInput], kills: list[tuple[int, int, bool]]
) -> None:
    assert take_with_kills(inputs, kills).get_sources() == take_inputs(inputs).get_sources()


@FEW
@given(st.lists(INPUT, max_size=8), KILLS)
def test_killed_anywhere_the_placements_are_the_same_in_any_order_of_inputs(
    inputs: list[PlacementInput], kills: list[tuple[int, int, bool]]
) -> None:
    assert list_placements(take_with_kills(inputs, kills)) == list_placements(take_inputs(inputs))


def take_with_kills(inputs: list[PlacementInput], kills: list[tuple[int, int, bool]]) -> Store:
    """Return the index after all inputs were taken, by one process after another that was killed."""
    store, position = Store(), 0
    for size, written, is_committed in kills:
        batch = inputs[position : position + size]
        if is_committed:
            take_inputs(batch, store)
            position += size
        else:
            store.write(_build_documents(batch, store)[:written])
    return take_inputs(inputs[position:], store)


@FEW
@given(st.lists(INPUT, max_size=8))
def test_read_again_the_placements_are_the_same_in_any_order_of_inputs(inputs: list[PlacementInput]) -> None:
    store = take_inputs(inputs)
    before = list_placements(store)
    take_inputs(inputs, store)
    assert list_placements(store) == before


def _build_documents(inputs: Sequence[PlacementInput], store: Store) -> list[Document]:
    state, documents = OccupancyState(), []
    for item in inputs:
        if state.is_missing(get_subject(item)):
            store.load(state, item)
        documents += state.apply(item, NOW)
    return documents


@FEW
@given(INPUTS)
def test_read_from_the_beginning_again_nothing_is_written(inputs: list[PlacementInput]) -> None:
    store = take_inputs(inputs)
    writes, documents = store.writes, dict(store.documents)
    take_inputs(inputs, store)
    assert (store.writes, store.documents) == (writes, documents)


def test_a_change_that_arrives_late_between_two_equal_ones_shows_the_second_when_it_is_read_again() -> None:
    inputs = [a_registration(0, memory_mib=2), a_registration(2, memory_mib=2), a_registration(1, memory_mib=1)]
    store = take_inputs(inputs)
    assert [hit.source["@timestamp"][17:19] for hit in store.search(OBSERVATIONS.alias)] == ["31", "30"]
    take_inputs(inputs, store)
    assert [hit.source["@timestamp"][17:19] for hit in store.search(OBSERVATIONS.alias)] == ["32", "31", "30"]


def test_the_latest_observations_are_kept_by_time_in_any_order_of_arrival() -> None:
    latest = RecentObservations()
    assert latest.add(ObservationDigest(to_time(5), "five", "x"))
    assert latest.add(ObservationDigest(to_time(1), "one", "y"))
    assert not latest.add(ObservationDigest(to_time(6), "six", "x"))
    assert not latest.add(ObservationDigest(to_time(1), "one", "y"))
    assert not latest.add(ObservationDigest(to_time(1), "one", "z"))
    assert [
        latest.add(ObservationDigest(to_time(10 + number), str(number), str(number))) for number in range(REMEMBERED)
    ] == [True] * REMEMBERED


def encode_and_decode(event: Any) -> PlacementInput | Rejected | None:
    record = encode(event)
    return decode_input(record.value, record.headers, NOW)


BOUND: dict[str, Any] = {"bind": BindOutcome(node="node1", bound=True, ended_at=to_time(0)), "chosen": "node1"}


def test_of_a_summary_with_a_bind_only_the_first_part_is_decoded() -> None:
    summary = a_summary([f"node{number}" for number in range(6_000)], **BOUND)
    first, *others = split(summary)
    assert others
    assert isinstance(encode_and_decode(first), BoundAttempt)
    assert [encode_and_decode(other) for other in others] == [None] * len(others)


@pytest.mark.parametrize(
    "event", [a_summary(), a_repetition(), a_summary(scheduler_message='a text with "bind":null in it')]
)
def test_an_attempt_without_a_bind_is_not_decoded(event: Any) -> None:
    assert encode_and_decode(event) is None


def test_a_text_that_looks_like_a_missing_bind_hides_none() -> None:
    assert isinstance(encode_and_decode(a_summary(scheduler_message='"bind":null', **BOUND)), BoundAttempt)


def test_devices_of_a_bind_are_allocated_by_container_with_or_without_amounts() -> None:
    requests = [a_request(container="setup", init=True), a_request(container="main")]
    picked = [PickedDevice(container=1, uuid="GPU-1", model="A100", memory_mib=5, cores_percent=9)]
    held = to_bind_fact(bound(0, requests=requests, picked=picked, picked_devices=["GPU-1", "GPU-2"])).held
    assert [(entry.uuid, entry.container, entry.init, entry.memory_mib, entry.cores_percent) for entry in held] == [
        ("GPU-1", "main", False, 5, 9),
        ("GPU-2", "", False, None, None),
    ]


def test_a_bind_to_another_node_than_the_chosen_one_has_no_known_devices() -> None:
    assert to_bind_fact(bound(0, chosen="node2")).held == ()


@pytest.mark.parametrize(
    ("fields", "is_read"),
    [({}, True), ({"layer": "queue"}, False), ({"nearest_nodes": []}, False), ({"missing_devices": None}, False)],
)
def test_a_repeated_refusal_is_read_where_nodes_lack_a_known_number_of_devices(
    fields: dict[str, Any], is_read: bool
) -> None:
    assert isinstance(encode_and_decode(a_repetition(wait=a_wait(**fields))), RefusedAgain) is is_read


def list_forecasts(store: Store) -> list[tuple[int | None, int | None]]:
    """List how many forecasts each placement judged, and found right."""
    sources = [document.source for document in reversed(store.search(OCCUPANCY.alias))]
    return [(source.get("forecasts_judged"), source.get("forecasts_right")) for source in sources]


@pytest.mark.parametrize(("seconds", "right"), [(19, 0), (20, 1), (40, 1), (41, 0)])
def test_the_start_of_a_pod_judges_its_forecast_also_after_a_restart(seconds: float, right: int) -> None:
    store = take_inputs([a_repeated_refusal(10)])
    assert list_forecasts(take_inputs([bound(seconds)], store)) == [(1, right)]
    # Another process reads the placement, and what follows from its end.
    assert list_forecasts(take_inputs([an_observation(50, "Succeeded")], store)) == [(1, right)]


def test_a_forecast_without_an_interval_judges_nothing_and_another_pod_of_the_name_has_none() -> None:
    store = take_inputs([a_repeated_refusal(10, missing="order"), bound(20)])
    assert list_forecasts(store) == [(None, None)]
    assert list_forecasts(take_inputs([a_repeated_refusal(0), bound(15, pod=a_pod(uid="u2"))])) == [(None, None)]


def test_every_interval_is_judged_and_an_equal_cause_is_written_once() -> None:
    store = take_inputs(
        [a_repeated_refusal(0, missing="order"), a_repeated_refusal(1, missing="order"), a_repeated_refusal(2)]
    )
    assert len(store.search(OBSERVATIONS.alias, kind=FORECAST_KIND)) == 2
    assert list_forecasts(take_inputs([bound(12)], store)) == [(1, 1)]


def test_a_forecast_is_due_once_for_an_obstacle_and_not_long_after_the_refusal() -> None:
    state, refusal = OccupancyState(), a_repeated_refusal(0)
    take_inputs([an_observation(0, "Pending", "")], None, state)
    times = (0, 30, 120, 121)
    assert [state.take_forecast_turn(a_repeated_refusal(time), to_time(time)) for time in times] == [
        True,
        False,
        True,
        False,
    ]
    assert not state.take_forecast_turn(a_repeated_refusal(400), to_time(461))
    take_inputs([refusal], None, state)
    assert not state.take_forecast_turn(a_repeated_refusal(600), to_time(600))
    other = a_repeated_refusal(600).model_copy(update={"wait": a_wait(code="CardComputeUnitsExhausted")})
    assert state.take_forecast_turn(other, to_time(600))


def test_what_happens_far_in_the_future_is_rejected_with_its_time() -> None:
    rejected = encode_and_decode(an_observation(10**7))
    assert isinstance(rejected, Rejected)
    assert "2027-02" in str(rejected)


def move_to_cluster(item: PlacementInput, cluster: str) -> PlacementInput:
    fields: dict[str, Any] = {"cluster": cluster}
    if isinstance(item, BoundAttempt):
        # Attempts of two clusters have two ids.
        fields["attempt_id"] = f"{item.attempt_id}-{cluster}"
    elif isinstance(item, RefusedAgain) and item.forecast:
        fields["forecast"] = item.forecast.model_copy(update={"cluster": cluster})
    return item.model_copy(update=fields)


@FEW
@given(INPUTS, INPUTS, st.randoms(use_true_random=False))
def test_two_clusters_with_equal_names_have_what_each_has_alone(
    east: list[PlacementInput], west: list[PlacementInput], order: random.Random
) -> None:
    alone = [[move_to_cluster(item, "east") for item in east], [move_to_cluster(item, "west") for item in west]]
    turns = [number for number, items in enumerate(alone) for _ in items]
    order.shuffle(turns)
    left = [iter(items) for items in alone]
    state = OccupancyState()
    both = take_inputs([next(left[number]) for number in turns], state=state)
    stores = [take_inputs(items) for items in alone]
    assert both.get_sources() == stores[0].get_sources() | stores[1].get_sources()
    assert len(both.documents) == sum(len(store.documents) for store in stores)


def test_pods_of_two_clusters_do_not_overcommit_a_device_together() -> None:
    state = OccupancyState()
    inputs: list[PlacementInput] = [a_registration(-9, memory_mib=30000), bound(0)]
    take_inputs([move_to_cluster(item, cluster) for item in inputs for cluster in ("east", "west")], state=state)
    assert state.find_overcommitments(to_time(20)) == []
    take_inputs([move_to_cluster(bound(5, pod=a_pod("b", "u2")), "east")], state=state)
    assert [finding.cluster for finding in state.find_overcommitments(to_time(40))] == ["east"]
