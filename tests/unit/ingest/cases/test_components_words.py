"""Words of components that people paste from logs and conditions, each about a pod that the words themselves name."""

import pytest

from ingest.cases.answers import diagnose_pods
from ingest.cases.pasted_rows import parse_statement
from ingest.cases.read_case import list_pod_names, read_case_text
from schemas.answers.diagnosis import Diagnosis


def diagnose_text(text: str) -> tuple[str, Diagnosis]:
    case = read_case_text(text)
    (name,) = list_pod_names(case)
    (answer,) = diagnose_pods(case, [name])
    return name, answer.diagnosis


def test_the_condition_of_kais_group_is_about_the_pod_that_it_names() -> None:
    text = """It does not start:
    Message:  PodSchedulingErrors: Resources were not found for pod vision/enc-7 due to: no nodes with enough resources were found: 2 node(s) didn't have enough resources: smarter-devices/fuse.
4 node(s) didn't have enough of mig profile: nvidia.com/mig-3g.20gb..
    Node Pool:  default
"""  # noqa: E501
    name, diagnosis = diagnose_text(text)
    assert name == "vision/enc-7"
    sentences = [entry.sentence.en for entry in (diagnosis.obstacle, *diagnosis.other_obstacles) if entry]
    assert any("4 of 4 nodes" in words and "nvidia.com/mig-3g.20gb" in words for words in sentences)
    assert any("2 of 4 nodes" in words and "smarter-devices/fuse" in words for words in sentences)


def test_the_log_of_the_autoscaler_names_each_group_with_its_latest_reason() -> None:
    line = (
        "I0211 09:00:0{second}.000000       1 orchestrator.go:588] Pod lab/sim-2 can't be scheduled on {group}, "
        "predicate checking error: {reason}; predicateName=NodeResourcesFit; reasons: {reason}; debugInfo="
    )
    text = "\n".join(
        (
            line.format(second=1, group="https://cloud/groups/pool-a", reason="Insufficient amd.com/gpu"),
            line.format(second=2, group="pool-b", reason="Too many pods"),
            line.format(second=3, group="https://cloud/groups/pool-a", reason="Insufficient memory"),
        )
    )
    name, diagnosis = diagnose_text(text)
    assert name == "lab/sim-2"
    (word,) = [entry for entry in (diagnosis.obstacle, *diagnosis.other_obstacles) if entry]
    assert word.sentence.en == (
        "The cluster autoscaler adds no node for the pod; a new node of pool-a (Insufficient memory), "
        "pool-b (Too many pods) would be refused."
    )


def test_the_log_of_a_driver_names_the_claim_that_it_could_not_prepare() -> None:
    event = parse_statement(
        'E0912 08:00:00.000000       1 server.go:90] "dra: handling request failed" err="error preparing devices for '
        'claim 5f-6a: no such device" requestID=7 request="&NodePrepareResourceRequest{Namespace:lab,ClaimUid:5f-6a,'
        'ClaimName:sim-2-card,ResourceHandle:,}"'
    )
    assert event
    assert (event.reason, event.namespace) == ("FailedPrepareDynamicResources", "lab")
    assert event.note == "claim lab/sim-2-card: error preparing devices for claim 5f-6a: no such device"


@pytest.mark.parametrize(
    ("message", "name", "words"),
    [
        (
            (
                r"pods \"fit-0\" is forbidden: exceeded quota: team, requested: requests.amd.com/gpu=2, "
                r"used: requests.amd.com/gpu=7, limited: requests.amd.com/gpu=8"
            ),
            "default/fit-0",
            (
                "Job/fit could not make the pod: the API server refuses it, because a quota of namespace default would "
                "be exceeded; of quota team: requests.amd.com/gpu 7 of 8 used, 2 asked."
            ),
        ),
        (
            (
                r"admission webhook \"validatepod.volcano.sh\" denied the request: failed to create pod <lab/fit-1> as "
                r"the podgroup phase is Unknown"
            ),
            "lab/fit-1",
            "podgroup phase is Unknown",
        ),
    ],
)
def test_an_answer_of_the_api_server_within_a_controllers_error_is_read(message: str, name: str, words: str) -> None:
    line = (
        "E0912 08:00:00.000000       1 job_controller_actions.go:252] Failed to create pod x for Job fit, err "
        '&errors.StatusError{ErrStatus:v1.Status{TypeMeta:v1.TypeMeta{Kind:"", APIVersion:""}, '
        f'Status:"Failure", Message:"{message}", Reason:"Forbidden", Code:403}}}}'
    )
    answered, diagnosis = diagnose_text(line)
    assert answered == name
    assert diagnosis.obstacle
    assert words in diagnosis.obstacle.sentence.en


def test_a_status_of_several_words_is_that_of_a_refused_pod() -> None:
    text = """NAME     READY   STATUS                    RESTARTS   AGE   IP       NODE
ok-1     1/1     Running                   0          2d    10.0.0.1 numa-1
sim-2    0/1     Topology Affinity Error   0          2d    <none>   numa-1
"""
    name, diagnosis = diagnose_text(text)
    assert name == "default/sim-2"
    assert (diagnosis.state, diagnosis.obstacle and diagnosis.obstacle.code) == ("rejected", "KubeletTopology")
    assert "numa-1" in diagnosis.sentence.en


def test_events_behind_the_words_of_a_hub_are_about_its_pod() -> None:
    text = """Spawn failed: pod/jupyter-ada did not start in 60 seconds!
2025-03-10 05:43:14+00:00 [Warning] 0/9 nodes are available: 4 Insufficient amd.com/gpu, 5 node(s) were unschedulable.
"""
    name, diagnosis = diagnose_text(text)
    assert name == "default/jupyter-ada"
    assert diagnosis.obstacle
    assert "4 of 9 nodes" in diagnosis.obstacle.sentence.en


def test_a_row_about_pods_that_were_not_made_is_about_the_controller_of_the_command() -> None:
    text = """$ kubectl describe tfjob mnist -n lab
  Warning  FailedCreatePod  9s (x2 over 1m)  tfjob-controller  Error creating: admission webhook "rules.example" denied the request: no image tag
"""  # noqa: E501
    case = read_case_text(text)
    events = list(case.objects.list_events())
    assert [(event.kind, event.namespace, event.name) for event in events] == [("TFJob", "lab", "mnist")]


KARPENTER = (
    '{"level":"ERROR","message":"Could not schedule pod, incompatible with nodepool \\"a\\", did not tolerate '
    'team=blue:NoSchedule","pod":"lab/sim-2"}'
)


@pytest.mark.parametrize("line", [f'the log says "{KARPENTER}"', f"karpenter-7f-x2 controller {KARPENTER}"])
def test_a_line_in_json_is_read_behind_marks_and_between_quotation_marks(line: str) -> None:
    name, diagnosis = diagnose_text(f"{line}\n")
    assert name == "lab/sim-2"
    assert diagnosis.obstacle
    assert "does not tolerate the taint team=blue:NoSchedule of NodePool a" in diagnosis.obstacle.sentence.en


def test_a_row_behind_the_heading_of_a_form_is_read() -> None:
    text = """Seen by me:  Warning  FailedScheduling  6s   hami-scheduler  0/4 nodes are available: 4 node unregistered.
  Warning  FilteringFailed   67s   hami-scheduler  no available node, 4 nodes do not meet
"""
    _, diagnosis = diagnose_text(text)
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "node unregistered"


def test_words_in_a_text_complete_a_status_that_has_none() -> None:
    text = """Message:   Pod Allocate failed due to rpc error: desc = nvml: GPU is lost, which is unexpected

NAME     READY   STATUS                     RESTARTS   AGE
sim-2    0/1     UnexpectedAdmissionError   0          4s
"""
    name, diagnosis = diagnose_text(text)
    assert name == "default/sim-2"
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "KubeletDeviceLost"
    assert "nvml: GPU is lost" in diagnosis.obstacle.sentence.en


def test_a_copy_of_a_log_that_begins_in_the_middle_of_a_line_keeps_the_line() -> None:
    text = """the total number of devices on the node." pod="lab/sim-2" request devices nums=4 node device nums=2
I1104 06:32:23.952296       1 score.go:225] "calcScore:node not fit pod" pod="lab/sim-2" node="n-1"
"""
    name, diagnosis = diagnose_text(text.replace("the total", "request devices nums cannot exceed the total", 1))
    assert name == "lab/sim-2"
    assert diagnosis.obstacle
    assert "(4 requested, the node has 2)" in diagnosis.obstacle.sentence.en


def test_a_lock_in_the_words_of_older_releases_is_a_lock() -> None:
    text = """Events:
  Type     Reason            Age    From            Message
  Normal   FilteringSucceed  9s     hami-scheduler  Successfully filtered to following nodes: [n-1] for lab/sim-2
  Warning  BindingFailed     9s     hami-scheduler  node n-1 has been locked within 5 minutes
  Warning  FailedScheduling  9s     hami-scheduler  binding rejected: node n-1 has been locked within 5 minutes
"""
    name, diagnosis = diagnose_text(text)
    assert name == "lab/sim-2"
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "node lock contention"


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (
            "Allocate failed due toerror: code = Unknown desc = no profile of card 3 is left, which is unexpected",
            "default/pod",
            "could not hand the devices over: error: code = Unknown desc = no profile of card 3 is left",
        ),
        (
            (
                "Warning  UnexpectedAdmissionError  6s  kubelet  Allocate failed due to rpc error: "
                "code = Unknown desc = "
                'request for "amd.com/gpu": invalid request: maximum request size for shared resources is 1; found 4, '
                "which is unexpected"
            ),
            "default/pod",
            "gives a container at most 1 amd.com/gpu, and one asks for 4",
        ),
        (
            (
                'time="2025-02-22T02:38:39Z" level=info msg="node changed" namespace=lab '
                'new.message="Unschedulable: 0/6 nodes are available: 6 Insufficient amd.com/gpu." nodeID=loop-77'
            ),
            "lab/loop-77",
            "6 of 6 nodes have too little amd.com/gpu left",
        ),
        (
            (
                'Exception in thread "main" io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: '
                'POST at: https://10.0.0.1/api/v1/pods. Message: admission webhook "rules.example" denied '
                "the request: no group for pod <lab/agg-driver>. Received status: Status(code=400, message=twice)."
            ),
            "lab/agg-driver",
            "no group for pod <lab/agg-driver>",
        ),
        (
            (
                "kubectl describe pods -n lab sim-2 says\n"
                "  Warning  FailedScheduling  4m  cloud/dense-scheduler  0/2 nodes are available: 2 Insufficient cpu.\n"
            ),
            "lab/sim-2",
            "2 of 2 nodes have too little cpu left",
        ),
    ],
)
def test_words_in_other_clients_and_plugins_forms_are_read(text: str, name: str, words: str) -> None:
    answered, diagnosis = diagnose_text(f"{text}\n")
    assert answered == name
    assert diagnosis.obstacle
    assert words in diagnosis.obstacle.sentence.en


@pytest.mark.parametrize(
    "event",
    [
        # events.k8s.io/v1, and core/v1 with its fields in another order.
        (
            '&v1.Event{TypeMeta:v1.TypeMeta{Kind:"", APIVersion:""}, Action:"Scheduling", Reason:"FailedScheduling", '
            'Regarding:v1.ObjectReference{Kind:"Pod", Namespace:"lab", Name:"sim-9", UID:"6a"}, '
            'Note:"0/3 nodes are available: 3 node(s) had untolerated taint {team: \\"a\\"}.", Type:"Warning"}'
        ),
        (
            '&v1.Event{TypeMeta:v1.TypeMeta{Kind:"", APIVersion:""}, '
            'InvolvedObject:v1.ObjectReference{Kind:"Pod", Namespace:"lab", Name:"sim-9", UID:"6a"}, '
            'Reason:"FailedScheduling", Message:"0/3 nodes are available: 3 node(s) had untolerated taint '
            '{team: \\"a\\"}.", Source:v1.EventSource{Component:"default-scheduler", Host:""}, Type:"Warning"}'
        ),
    ],
    ids=["events.k8s.io", "core"],
)
def test_an_event_that_the_api_server_did_not_take_is_read_from_the_log(event: str) -> None:
    name, diagnosis = diagnose_text(
        f"E0911 10:00:00.000000       1 event_broadcaster.go:253] Server rejected event '{event}': "
        '\'events.events.k8s.io "sim-9.17" is forbidden: User "system:serviceaccount:sched:it" cannot patch resource '
        '"events"\' (will not retry!)'
    )
    assert name == "lab/sim-9"
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "TaintNotTolerated"
    assert 'team: "a"' in diagnosis.obstacle.sentence.en or "team" in diagnosis.obstacle.sentence.en


def test_a_reason_of_kais_queues_names_its_scheduler_in_a_table_without_reporters() -> None:
    name, diagnosis = diagnose_text(
        "LAST SEEN   TYPE      REASON      OBJECT      MESSAGE\n"
        "2m          Warning   OverLimit   pod/sim-4   vision quota has reached the allowable limit of GPUs. "
        "Limit is 4 GPUs, currently 3 GPUs allocated and workload requested 2 GPUs\n"
    )
    assert name == "default/sim-4"
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "QueueFull"
    assert "queue vision leaves too little GPUs" in diagnosis.sentence.en
