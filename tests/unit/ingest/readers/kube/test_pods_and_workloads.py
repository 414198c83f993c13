"""Problems before scheduling and after it: pods that are not made, pods that don't start, what pods hold."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.readers.kube import KubeEvents
from ingest.readers.kube.objects import read_kai_allocations
from schemas.events import AttemptConcluded, DeviceAllocation, ObjectProblem, Owner, PodObserved, WorkloadObserved
from schemas.json_types import Json
from tests.support.builders.api_server_objects import a_pod, an_event, read

# As the kubelet writes it when a device plugin refuses to allocate.
REFUSED = "Allocate failed due to rpc error: code = Unknown desc = device not found, which is unexpected"


def observe(pod: Json) -> PodObserved:
    (event,) = KubeEvents().read_object("pod", pod, 0.0)
    assert isinstance(event, PodObserved)
    return event


def with_status(**status: Any) -> Json:
    pod = a_pod(node="node1", phase="Pending")
    pod["status"] |= {"startTime": "2026-11-21T03:14:00Z"} | status
    return pod


def a_container(**state: Json) -> Json:
    return {"name": "main", "state": state}


def test_a_pod_that_its_kubelet_refused_says_why() -> None:
    observation = observe(with_status(phase="Failed", reason="UnexpectedAdmissionError", message=REFUSED))
    since = datetime(2026, 11, 21, 3, 14, tzinfo=UTC)
    assert observation.problems == [ObjectProblem(reason="UnexpectedAdmissionError", message=REFUSED, at=since)]


@pytest.mark.parametrize(
    ("container", "problems"),
    [
        (a_container(waiting={"reason": "ContainerCreating"}), []),
        (a_container(running={"startedAt": "2026-11-21T03:15:00Z"}), []),
        (a_container(terminated={"reason": "Completed", "startedAt": "2026-11-21T03:15:00Z"}), []),
        (
            a_container(waiting={"reason": "CreateContainerError", "message": "no device"}),
            [("CreateContainerError", "container main: no device", "03:14:00")],
        ),
        (
            a_container(terminated={"reason": "StartError", "message": "nvidia-container-cli: x",
                                    "finishedAt": "2026-11-21T03:15:30Z"}),
            [("StartError", "container main: nvidia-container-cli: x", "03:15:30")],
        ),
    ],
)  # fmt: skip
def test_containers_that_can_not_start_are_problems(container: Json, problems: list[tuple[str, str, str]]) -> None:
    observation = observe(with_status(containerStatuses=[container])).problems
    assert [(problem.reason, problem.message, f"{problem.at:%H:%M:%S}") for problem in observation] == problems


def test_a_pod_started_when_its_first_container_ran_and_not_its_init_container() -> None:
    statuses = [
        a_container(running={"startedAt": "2026-11-21T03:16:00Z"}),
        a_container(running={"startedAt": "2026-11-21T03:18:00Z"})
        | {"lastState": {"terminated": {"startedAt": "2026-11-21T03:15:00Z"}}},
    ]
    init = [a_container(terminated={"startedAt": "2026-11-21T03:14:00Z"})]
    observation = observe(with_status(containerStatuses=statuses, initContainerStatuses=init))
    assert observation.started_at == datetime(2026, 11, 21, 3, 15, tzinfo=UTC)
    assert observe(with_status()).started_at is None


def test_a_container_that_could_not_start_did_not_run() -> None:
    refused = {"reason": "StartError", "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "2026-11-21T03:15:30Z"}
    assert observe(with_status(containerStatuses=[a_container(terminated=refused)])).started_at is None


def test_a_change_of_something_else_does_not_repeat_a_problem() -> None:
    reader, pod = KubeEvents(), with_status(containerStatuses=[a_container(waiting={"reason": "ErrImagePull"})])
    assert len(reader.read_object("pod", pod, 0.0)) == 1
    pod["metadata"] |= {"resourceVersion": "1002", "managedFields": [{"time": "2026-11-21T03:30:00Z"}]}
    assert reader.read_object("pod", pod, 1.0) == []


def test_a_kubelets_warning_is_a_problem_of_the_pod() -> None:
    reader = KubeEvents("east")
    reader.read_object("pod", a_pod(node="node1"), 0.0)
    event = an_event("UnexpectedAdmissionError", REFUSED, scheduler="kubelet")
    (observation,) = reader.read_object("event", event, 0.0)
    assert isinstance(observation, PodObserved)
    assert (observation.cluster, observation.node, observation.phase, str(observation.pod)) == (
        "east",
        "node1",
        "",
        "ml/gpu8",
    )
    since = datetime(2026, 11, 21, 3, 13, 32, 250001, tzinfo=UTC)
    problem = ObjectProblem(reason="UnexpectedAdmissionError", message=REFUSED, at=since, reported_by="kubelet")
    assert observation.problems == [problem]


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        (an_event("Failed", "x", scheduler="kubelet"), {"type": "Normal"}),
        (an_event("Unhealthy", "x", scheduler="kubelet"), {}),
        (an_event("Failed", "x", scheduler="some-operator"), {}),
        (an_event("FailedCreate", "x", kind="Job"), {"regarding": {"kind": "Job", "namespace": "ml"}}),
        (an_event("SuccessfulCreate", "x", kind="Job"), {"type": "Normal"}),
    ],
)
def test_other_events_are_no_problems(event: Json, changed: Json) -> None:
    assert read(("event", event | changed)) == []


def test_a_job_whose_pods_are_not_made_is_observed_with_the_reason() -> None:
    quota = 'Error creating: pods "train-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8'
    event = an_event("FailedCreate", quota, pod="train", kind="Job", scheduler="job-controller")
    event["regarding"]["apiVersion"] = "batch/v1"
    (observation,) = read(("event", event), reader=KubeEvents("east"))
    assert isinstance(observation, WorkloadObserved)
    assert (observation.cluster, observation.namespace) == ("east", "ml")
    assert observation.workload == Owner(kind="Job", name="train", api_version="batch/v1")
    assert (observation.problem.reason, observation.problem.message, observation.problem.reported_by) == (
        "FailedCreate", quota, "job-controller",
    )  # fmt: skip
    assert observation.key == "east/ml/Job/train"


def test_an_attempt_and_the_observation_of_its_pod_describe_it() -> None:
    pod = a_pod()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    pod["metadata"] |= {"ownerReferences": [owner], "labels": {"team": "llm", "app": "x"}}
    refused = an_event("FailedScheduling", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    events = read(("pod", pod), ("event", refused), reader=KubeEvents(pod_labels=("team",)))
    described = [event for event in events if isinstance(event, PodObserved | AttemptConcluded)]
    assert [type(event) for event in described] == [PodObserved, AttemptConcluded]
    for event in described:
        assert event.description
        assert (event.description.workload, event.description.labels) == ("Job/train", {"team": "llm"})
        assert event.scheduler == "default-scheduler"


def test_the_attempt_that_bound_a_pod_describes_it_too() -> None:
    pod = a_pod(node="node1")
    pod["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    bound = an_event("Scheduled", "Successfully assigned ml/gpu8 to node1")
    (end,) = (event for event in read(("pod", pod), ("event", bound)) if isinstance(event, AttemptConcluded))
    assert end.description
    assert end.description.queue == "q"


Share = tuple[str, str, int | None]


@pytest.mark.parametrize(
    ("labels", "annotations", "held"),
    [
        ({}, {"gpu-fraction": "0.5"}, []),
        ({"runai-gpu-group": "g-1"}, {"gpu-fraction": "0.5"}, [("g-1", "main", None)]),
        ({"runai-gpu-group": "g-1"}, {"gpu-memory": "2000"}, [("g-1", "main", 2000)]),
        ({"runai-gpu-group/g-2": "g-2", "runai-gpu-group/g-1": "g-1"},
         {"gpu-memory": "2000", "gpu-fraction-container-name": "side"}, [("g-1", "side", 2000), ("g-2", "side", 2000)]),
    ],
)  # fmt: skip
def test_kais_shares_are_held_by_group(
    labels: Json, annotations: Json, held: list[tuple[str, str, int | None]]
) -> None:
    pod = a_pod(node="node1")
    pod["metadata"] |= {"labels": labels, "annotations": annotations}
    expected = [DeviceAllocation(uuid=uuid, container=name, memory_mib=memory) for uuid, name, memory in held]
    assert read_kai_allocations(pod) == expected
    assert observe(pod).allocations == expected
