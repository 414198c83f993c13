"""Pods that their node can't start, and controllers that make none, in descriptions and tables of events."""

from datetime import UTC, datetime

import pytest

from engine.cases.unmade_causes import list_unmade
from ingest.cases.answers import diagnose_pods
from ingest.cases.descriptions import parse_descriptions
from ingest.cases.pasted_rows import parse_row
from ingest.cases.read_case import list_pod_names, read_case_text
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Diagnosis, Obstacle
from schemas.answers.workloads import WorkloadDiagnosis

WRITTEN = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
HEADER = "LAST SEEN   TYPE      REASON         OBJECT            MESSAGE\n"
RUNC = "Error: failed to create task: failed to create shim task: OCI runtime create failed: runc create failed: "
INIT = f"{RUNC}unable to start container process: error during container init: error running hook #0: "
TOOLKIT = f"{INIT}error running hook: exit status 1, stderr: Auto-detected mode as 'legacy' nvidia-container-cli: "
SANDBOX = f"Failed to create pod sandbox: rpc error: code = Unknown desc = {RUNC}unable to retrieve OCI runtime error "


def diagnose_text(text: str) -> Diagnosis:
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    return answer.diagnosis


def diagnose_maker(text: str) -> WorkloadDiagnosis:
    case = read_case_text(text)
    (key,) = list_unmade(case.objects)
    return diagnose_workload(case, key)


def get_obstacle(diagnosis: Diagnosis) -> Obstacle:
    assert diagnosis.obstacle
    return diagnosis.obstacle


@pytest.mark.parametrize(
    ("reason", "layers", "cause", "code"),
    [
        ("Failed", TOOLKIT, "initialization error: nvml error: driver/library version mismatch", "DriverMismatch"),
        ("Failed", TOOLKIT, "requirement error: unsatisfied condition: cuda>=13.0", "ImageNeedsDriver"),
        ("Failed", TOOLKIT, "device error: GPU-3: unknown device", "ToolkitFailed"),
        (
            "FailedCreatePodSandBox",
            f"{SANDBOX}(open /run/x/log.json: no such file or directory): ",
            "fork/exec /opt/kit/nvidia-container-runtime: no such file or directory",
            "RuntimeMissing",
        ),
    ],
)
def test_a_runtimes_error_is_answered_by_its_innermost_cause(reason: str, layers: str, cause: str, code: str) -> None:
    rows = (
        "3m  Normal   Scheduled  pod/fit-0  Successfully assigned nlp/fit-0 to n-7\n"
        f"2m  Warning  {reason}     pod/fit-0  {layers}{cause}: unknown\n"
    )
    diagnosis = diagnose_text(HEADER + rows)
    assert (diagnosis.state, get_obstacle(diagnosis).code) == ("placed", code)
    assert diagnosis.sentence.en.startswith("The pod is on node n-7, w")
    assert diagnosis.sentence.en.endswith(f": {reason}: {cause}.")


def test_a_restart_does_not_hide_why_the_container_could_not_start() -> None:
    described = f"""\
Name:         fit-0
Namespace:    nlp
Node:         n-7/10.0.0.7
Status:       Pending
Containers:
  main:
    Image:  fit:1
Events:
  Type     Reason   Age  From     Message
  ----     ------   ---- ----     -------
  Warning  Failed   3m   kubelet  {TOOLKIT}initialization error: nvml error: driver/library version mismatch: unknown
  Warning  BackOff  1m   kubelet  Back-off restarting failed container main in pod fit-0_nlp(7)
"""
    assert get_obstacle(diagnose_text(described)).code == "DriverMismatch"


DESCRIBED_STATES = """\
Name:         plugin-x2
Namespace:    gpu
Node:         n-7/10.0.0.7
Start Time:   Wed, 04 Mar 2026 12:00:00 +0800
Status:       Running
Containers:
  plugin:
    Image:          plugin:3
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    2
      Started:      Wed, 04 Mar 2026 12:30:00 +0800
    Ready:          False
    Restart Count:  9
    Limits:
      cpu:  1
  monitor:
    Image:          plugin:3
    State:          Running
      Started:      Wed, 04 Mar 2026 12:00:05 +0800
    Ready:          True
    Restart Count:  0
Events:             <none>
"""


def test_the_states_of_containers_are_read_from_a_description() -> None:
    (pod,) = parse_descriptions(DESCRIBED_STATES, WRITTEN)
    plugin, monitor = pod["status"]["containerStatuses"]
    assert plugin["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
    assert plugin["lastState"]["terminated"]["exitCode"] == 2
    assert plugin["restartCount"] == 9
    assert list(monitor["state"]) == ["running"]
    assert pod["status"]["startTime"] == "2026-03-04T04:00:00Z"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}


def test_a_described_container_that_ends_again_and_again_is_the_obstacle() -> None:
    diagnosis = diagnose_text(DESCRIBED_STATES)
    assert get_obstacle(diagnosis).code == "ContainerEnds"
    assert "container plugin: ended with exit code 2, started again 9 times" in diagnosis.sentence.en


def test_a_described_container_that_waits_for_its_image_has_no_other_cause() -> None:
    text = DESCRIBED_STATES.replace("CrashLoopBackOff", "ImagePullBackOff").partition("    Last State:")[0]
    assert get_obstacle(diagnose_text(f"{text}Events:  <none>\n")).code == "ImageNotPulled"


FORBIDDEN = 'is forbidden: violates PodSecurity "baseline:latest": privileged (container "a" must not set it)'


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Job", "Parallelism:    2\nCompletions:    2\nPods Statuses:  0 Active (0 Ready) / 0 Succeeded / 0 Failed\n"),
        ("ReplicaSet", "Replicas:     0 current / 2 desired\nPods Status:  0 Running / 0 Waiting / 0 Succeeded\n"),
        ("StatefulSet", "Replicas:         2 desired | 0 total\nUpdate Strategy:  RollingUpdate\n"),
    ],
)  # fmt: skip
def test_a_described_controller_that_may_not_make_its_pods_is_answered(kind: str, fields: str) -> None:
    text = (
        f"Name:         fit\nNamespace:    nlp\nSelector:     app=fit\nLabels:       app=fit\n{fields}"
        "Pod Template:\n  Labels:  app=fit\n  Containers:\n   a:\n    Image:  fit:1\n    Limits:\n"
        "      nvidia.com/gpu:  1\nEvents:\n  Type     Reason        Age  From        Message\n"
        "  ----     ------        ---- ----        -------\n"
        f'  Warning  FailedCreate  9s   controller  pods "fit-x" {FORBIDDEN}\n'
    )
    answer = diagnose_maker(text)
    (group,) = answer.groups
    assert (answer.name, answer.kind.partition(".")[0]) == ("fit", kind)
    assert group.obstacle
    assert group.obstacle.code == "PodSecurityRefused"
    assert FORBIDDEN in group.obstacle.sentence.en
    assert answer.waiting == 2


def test_a_described_set_of_daemons_that_selects_no_node_says_so() -> None:
    text = (
        "Name:           plugin\nNamespace:      gpu\nSelector:       app=plugin\nNode-Selector:  pool=gpu\n"
        "Labels:         app=plugin\nDesired Number of Nodes Scheduled: 0\nCurrent Number of Nodes Scheduled: 0\n"
        "Pod Template:\n  Labels:  app=plugin\n  Containers:\n   a:\n    Image:  plugin:3\nEvents:  <none>\n"
    )
    (group,) = diagnose_maker(text).groups
    assert group.obstacle
    assert group.obstacle.code == "DaemonSetWithoutNode"
    assert "pool=gpu" in group.obstacle.sentence.en


@pytest.mark.parametrize("kind", ["statefulset", "daemonset", "replicaset", "job"])
def test_a_table_of_events_names_the_controller_that_makes_no_pod(kind: str) -> None:
    row = f'6s  Warning  FailedCreate  {kind}/fit  Error creating: pods "fit-x" {FORBIDDEN}\n'
    answer = diagnose_maker(HEADER + row)
    assert (answer.name, answer.kind.partition(".")[0].lower()) == ("fit", kind)
    (group,) = answer.groups
    assert group.obstacle
    assert group.obstacle.code == "PodSecurityRefused"


def test_a_described_claim_explains_the_pod_that_uses_it() -> None:
    failure = 'storageclass.storage.k8s.io "gold" not found'
    refusal = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    text = (
        "$ kubectl -n nlp describe pod fit-0 | tail -n 1\n"
        f"  Warning  FailedScheduling  9s  default-scheduler  {refusal}\n"
        "$ kubectl -n nlp describe pvc data\nName:          data\nNamespace:     nlp\nStorageClass:  gold\n"
        "Status:        Pending\nVolume:\nLabels:        <none>\nAccess Modes:\nUsed By:       fit-0\nEvents:\n"
        "  Type     Reason              Age  From                         Message\n"
        "  ----     ------              ---- ----                         -------\n"
        f"  Warning  ProvisioningFailed  2s   persistentvolume-controller  {failure}\n"
    )
    diagnosis = diagnose_text(text)
    assert (diagnosis.namespace, diagnosis.name) == ("nlp", "fit-0")
    assert (
        'data is Pending; its provisioner says: storageclass.storage.k8s.io "gold" not found' in diagnosis.sentence.en
    )


def test_a_reporter_may_begin_with_a_digit() -> None:
    row = parse_row("  Normal  Scheduled  73s  2nd-scheduler  Successfully assigned nlp/fit-0 to n-7")
    assert row
    assert row.reporter == "2nd-scheduler"


def test_the_pods_that_a_described_controller_has_made_are_counted() -> None:
    text = (
        "Name:           fit\nNamespace:      nlp\nParallelism:    3\nCompletions:    3\nLabels:         a=b\n"
        "Pods Statuses:  2 Active (1 Ready) / 1 Succeeded / 0 Failed\nEvents:         <none>\n"
    )
    (job,) = parse_descriptions(text, WRITTEN)
    assert job["apiVersion"] == "batch/v1"
    assert job["status"] == {"active": 2, "succeeded": 1, "failed": 0}


def test_a_kind_of_another_group_keeps_its_version() -> None:
    text = (
        "Name:         fit\nNamespace:    nlp\nAPI Version:  batch.example/v1\nKind:         Job\nSpec:\n  Tasks:  1\n"
    )
    (job,) = parse_descriptions(text, WRITTEN)
    assert (job["apiVersion"], job["kind"]) == ("batch.example/v1", "Job")


def test_a_table_without_namespaces_is_of_the_one_that_the_scheduler_names() -> None:
    """`kubectl get events` without -A lists one namespace."""
    rows = (
        "3m  Warning  FailedScheduling  pod/fit-0  0/1 nodes are available: 1 Insufficient cpu.\n"
        "2m  Normal   Scheduled         pod/fit-0  Successfully assigned nlp/fit-0 to n-7\n"
        "1m  Warning  FailedPrepareDynamicResources  pod/fit-0  Failed to prepare dynamic resources: plugin not found\n"
    )
    for text in (HEADER + rows, rows):
        case = read_case_text(text)
        assert list(list_pod_names(case)) == ["nlp/fit-0"]


@pytest.mark.parametrize(
    "words",
    [
        "maximum memory usage per Container is 64Gi, but limit is 96Gi",
        "minimum cpu usage per Pod is 2, but request is 500m",
        "maximum nvidia.com/gpu usage per Container is 1. No limit is specified.",
        "memory max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ],
)
def test_a_pod_that_a_limit_range_refuses_is_never_made(words: str) -> None:
    """The words are those of Kubernetes' admission plugin LimitRanger."""
    row = f'2m  Warning  FailedCreate  replicaset/fit  Error creating: pods "fit-" is forbidden: {words}\n'
    group = diagnose_maker(HEADER + row).groups[0]
    assert group.obstacle is not None
    assert group.obstacle.code == "LimitRangeBroken"
    assert words in group.obstacle.sentence.en


def test_a_group_in_backoff_is_explained_by_the_attempt_that_failed() -> None:
    scaler = "1m  Normal  NotTriggerScaleUp  pod/fit-0  pod didn't trigger scale-up: 1 "
    failed = "9m  Warning  FailedScaleUp  pod/fit-0  Node scale up in zones z1 associated with this pod failed: Quota\n"
    rows = f"2m  Warning  FailedScheduling  pod/fit-0  0/1 nodes are available: 1 Insufficient cpu.\n{failed}"

    def write_all(reason: str) -> str:
        diagnosis = diagnose_text(f"{HEADER}{rows}{scaler}{reason}\n")
        return " ".join(obstacle.sentence.en for obstacle in diagnosis.other_obstacles)

    assert "1 is in backoff after a failed scale-up; its last attempt failed: Node scale up in zones z1" in write_all(
        "in backoff after failed scale-up"
    )
    # Another reason has nothing to do with the attempt.
    assert "zones z1" not in write_all("max node group size reached")


NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n-7}
status: {allocatable: {cpu: 4}}
"""
PINNED = """\
apiVersion: v1
kind: Pod
metadata: {name: fit-0, namespace: nlp}
spec: {nodeName: NODE, containers: [{name: c}]}
status: {phase: PHASE}
"""


@pytest.mark.parametrize(
    ("node", "phase", "code"),
    [("n-8", "Pending", "NodeNotThere"), ("n-7", "Pending", None), ("n-8", "Running", None)],
)
def test_a_pod_is_pinned_to_a_node_that_is_not_there(node: str, phase: str, code: str | None) -> None:
    pod = PINNED.replace("NODE", node).replace("PHASE", phase)
    obstacle = diagnose_text(f"{NODE}---\n{pod}").obstacle
    assert (obstacle.code if obstacle else None) == code


def test_no_node_is_missed_where_none_was_read() -> None:
    pod = PINNED.replace("NODE", "n-8").replace("PHASE", "Pending")
    assert diagnose_text(pod).obstacle is None
