"""Documents about who is where: stays and observations come back from them, and fit the strict mappings."""

from datetime import timedelta
from typing import Any

import orjson
import pytest

from schemas.codec.records import Rejected, encode, encode_value
from schemas.documents.forecasts import build_forecast_document
from schemas.documents.observations import Observed, build_observation_document, read_observation
from schemas.documents.placements import build_placement_document, read_placement
from schemas.events import (
    Condition,
    DeviceAllocation,
    NodeChecked,
    NodeObserved,
    NodeProblem,
    NodeRegistered,
    ObjectProblem,
    Owner,
    PodDescription,
    PodObserved,
    PodRef,
    SchedulerObserved,
    WorkloadObserved,
)
from schemas.forecasts import StartForecast
from schemas.indices import OBSERVATIONS, OCCUPANCY
from schemas.placements import PodPlacement
from tests.support.builders.events import STARTED

POD = PodRef(namespace="llm", name="deepseek-a", uid="6e1c")
HELD = DeviceAllocation(uuid="GPU-1", container="worker", model="A100", memory_mib=20480, cores_percent=50)
READY = Condition(type="Ready", status="False", reason="ContainersNotReady", message="containers: [worker]")
JOB = Owner(kind="Job", name="train", api_version="batch/v1")
DESCRIPTION = PodDescription(
    created_at=STARTED - timedelta(seconds=90), owners=[JOB], pod_group="train", queue="team-a", priority=1000,
    priority_class="high", service_account="trainer", labels={"team": "a"},
)  # fmt: skip
OBSERVED: list[Observed] = [
    PodObserved(
        cluster="default", pod=POD, observed_at=STARTED, phase="Running", node="node1", conditions=[READY],
        deleted=True,
        allocations=[HELD, HELD], description=DESCRIPTION, bind_phase="failed",
        problems=[ObjectProblem(reason="UnexpectedAdmissionError", message="no such device", at=STARTED)],
    ),
    NodeObserved(cluster="default", node="node1", observed_at=STARTED, capacity={"cpu": "12"}, conditions=[READY]),
    NodeRegistered(cluster="default",
        node="node1", observed_at=STARTED, scheduler="hami-scheduler", registered=True, uuid=["GPU-1"], model=["A100"],
        mode=["hami-core"], index=[0], memory_mib=[81920], cores_percent=[100], slots=[10], numa=[0], healthy=[True],
    ),
    NodeChecked(cluster="default",
        node="node1", observed_at=STARTED, scheduler="hami-scheduler",
        problems=[NodeProblem(code="HandshakeTooOld", vendor="NVIDIA", message="61 s old")],
    ),
    WorkloadObserved(
        cluster="default", namespace="llm", workload=JOB, observed_at=STARTED,
        problem=ObjectProblem(reason="FailedCreate", message="over quota", at=STARTED, reported_by="job-controller"),
    ),
    SchedulerObserved(
        cluster="default", scheduler="hami-scheduler", observed_at=STARTED, instance="hami-scheduler-7c",
        version="2.10.0", implementation="HAMi", settings={"policy": "spread"}, settings_digest="9f86d081884c7d65",
    ),
]  # fmt: skip


def a_placement(**fields: Any) -> PodPlacement:
    plain = {"cluster": "default", "id": "5d", "pod": POD, "node": "node1", "started_at": STARTED}
    return PodPlacement.model_validate(plain | fields)


def to_source(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document as OpenSearch gives it back."""
    source: dict[str, Any] = orjson.loads(encode_value(document))
    return source


TIMES = {
    "first_judged_at": STARTED - timedelta(seconds=80),
    "judged_at": STARTED - timedelta(seconds=1),
    "bound_at": STARTED,
    "running_at": STARTED + timedelta(seconds=30),
}
FORECAST = StartForecast(
    cluster="default", pod=POD, given_at=STARTED - timedelta(hours=1), obstacle="CardInsufficientMemory", basis="shape",
    after=["llm/train-0"], earliest=STARTED - timedelta(minutes=1), latest=STARTED + timedelta(minutes=1),
)  # fmt: skip
ENDED = {"ended_at": STARTED + timedelta(hours=1), "ended_by": "Succeeded", "phase": "Succeeded"}


@pytest.mark.parametrize(
    "placement",
    [
        a_placement(),
        a_placement(**ENDED, allocations=[HELD], scheduler="hami-scheduler", attempt_id="0f"),
        a_placement(**ENDED, **TIMES, description=DESCRIPTION, waited_for=["NumaNotFit"], obstacle="NumaNotFit"),
        a_placement(allocations=[DeviceAllocation(uuid="GPU-1", container="setup", init=True)]),
    ],
)
def test_a_placement_comes_back_from_its_document(placement: PodPlacement) -> None:
    assert read_placement(placement.id, to_source(build_placement_document(placement, {}))) == placement


def test_a_pod_is_on_its_node_from_its_beginning_until_just_before_the_end() -> None:
    placement = a_placement(**ENDED)
    assert [placement.is_on(STARTED + timedelta(minutes=minute)) for minute in (-1, 0, 59, 60)] == [
        False,
        True,
        True,
        False,
    ]
    assert a_placement().is_on(STARTED + timedelta(days=400))


@pytest.mark.parametrize(
    ("fields", "placed", "started"),
    [
        (TIMES | {"description": DESCRIPTION}, 90, 120),
        # Without the time at which it was made the wait begins with the first attempt.
        (TIMES, 80, 110),
        ({"description": DESCRIPTION, "bound_at": STARTED}, 90, None),
        ({"bound_at": STARTED, "running_at": STARTED}, None, None),
        # A clock that is behind.
        ({"description": DESCRIPTION, "bound_at": STARTED - timedelta(seconds=91)}, 0, None),
    ],
)
def test_how_long_a_pod_waited_is_known_where_both_times_are(
    fields: dict[str, Any], placed: float | None, started: float | None
) -> None:
    document = build_placement_document(a_placement(**fields), {})
    assert (document["placement_seconds"], document["start_seconds"]) == (placed, started)


def test_a_placement_is_found_by_where_its_pod_comes_from() -> None:
    document = build_placement_document(a_placement(description=DESCRIPTION, waited_for=["NumaNotFit"]), {})
    names = ("workload", "pod_group", "queue", "priority_class", "service_account", "labels", "waited_for")
    assert [document[name] for name in names] == [
        "Job/train", "train", "team-a", "high", "trainer", ["team=a"], ["NumaNotFit"]
    ]  # fmt: skip
    assert document["created_at"] == "2026-11-21T03:04:53.217054Z"


def test_a_placement_is_found_by_what_people_look_for() -> None:
    document = build_placement_document(a_placement(allocations=[HELD, HELD]), {})
    assert document["devices"] == ["GPU-1"]
    assert document["text"] == "llm/deepseek-a node1 GPU-1 A100"


@pytest.mark.parametrize("event", OBSERVED, ids=lambda event: type(event).__name__)
def test_an_observation_comes_back_from_its_document(event: Observed) -> None:
    again = read_observation(to_source(build_observation_document(event, "d1")))
    assert not isinstance(again, Rejected)
    assert encode(again) == encode(event)


def test_documents_of_observations_say_what_they_are_found_by() -> None:
    pod, node, registered, checked, job, scheduler = (build_observation_document(event, "d1") for event in OBSERVED)
    assert [document["kind"] for document in (pod, node, registered, checked, job, scheduler)] == [
        "pod-observed", "node-observed", "node-registered", "node-checked", "workload-observed", "scheduler-observed"
    ]  # fmt: skip
    assert (pod["devices"], pod["problems"], pod["workload"]) == (["GPU-1"], ["UnexpectedAdmissionError"], "Job/train")
    assert (job["namespace"], job["workload"], job["problems"]) == ("llm", "Job/train", ["FailedCreate"])
    assert (scheduler["scheduler"], scheduler["settings_digest"]) == ("hami-scheduler", "9f86d081884c7d65")
    assert (
        pod["text"]
        == "default/llm/deepseek-a node1 Running deleted failed Ready False ContainersNotReady containers: [worker] "
        "UnexpectedAdmissionError no such device"
    )
    assert registered["devices"] == ["GPU-1"]
    assert checked["problems"] == ["HandshakeTooOld"]


def test_every_field_is_declared_in_the_strict_mappings() -> None:
    placement = a_placement(description=DESCRIPTION, forecasts=[FORECAST])
    assert set(build_placement_document(placement, {})) == set(OCCUPANCY.properties)
    observed = {name for event in OBSERVED for name in build_observation_document(event, "")}
    assert observed == set(OBSERVATIONS.properties)
    assert set(build_forecast_document(FORECAST)) <= observed


def test_a_document_of_no_known_kind_is_rejected_with_its_place() -> None:
    assert read_observation({"kind": "rumour"}) == Rejected(
        "no kind of observation is called 'rumour'", "document.kind"
    )
    assert isinstance(read_placement("5d", {"pod": "a"}), Rejected)
