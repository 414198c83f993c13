"""Parts of the cluster in tables of kubectl, locks, missing resources, and refusals before any scheduler."""

import pytest

from engine.cases.unmade_causes import list_unmade
from engine.diagnosis.layer_waits import find_layer_of_code
from ingest.cases.answers import diagnose_pods
from ingest.cases.foreign_texts import find_advice
from ingest.cases.read_case import list_pod_names, read_case_text
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Diagnosis, Obstacle

REFUSED = "0/2 nodes are available: 2 Insufficient vendor.io/card."
EVENTS = "$ kubectl get events -n nlp\nLAST SEEN   TYPE      REASON             OBJECT      MESSAGE\n"


def diagnose_text(text: str, name: str) -> Diagnosis:
    case = read_case_text(text)
    assert name in list(list_pod_names(case))
    (answer,) = diagnose_pods(case, [name])
    return answer.diagnosis


def get_obstacle(diagnosis: Diagnosis) -> Obstacle:
    assert diagnosis.obstacle
    return diagnosis.obstacle


def a_refusal(words: str) -> str:
    return f"{EVENTS}9s          Warning   FailedScheduling   pod/fit-0   {words}\n"


@pytest.mark.parametrize("search", ["", " | grep card"], ids=["with its header", "searched"])
def test_a_device_plugin_that_does_not_run_is_why_nodes_lack_its_resource(search: str) -> None:
    header = "" if search else "NAME                   READY   STATUS             RESTARTS       AGE\n"
    row = "card-device-plugin-x7   0/1     CrashLoopBackOff   12 (40s ago)   31m\n"
    diagnosis = diagnose_text(
        f"$ kubectl get pods -n card-system{search}\n{header}{row}{a_refusal(REFUSED)}", "nlp/fit-0"
    )
    assert get_obstacle(diagnosis).code == "DevicePluginDown"
    assert "card-system/card-device-plugin-x7" in diagnosis.sentence.en
    assert "CrashLoopBackOff" in diagnosis.sentence.en
    assert [other.code for other in diagnosis.other_obstacles] == ["ResourceShortOrMissing"]


def test_a_device_plugin_does_not_matter_to_a_pod_that_lacks_memory() -> None:
    row = "card-device-plugin-x7   0/1     CrashLoopBackOff   12 (40s ago)   31m\n"
    words = "0/2 nodes are available: 2 Insufficient memory."
    diagnosis = diagnose_text(f"$ kubectl get pods -n card-system\n{row}{a_refusal(words)}", "nlp/fit-0")
    assert get_obstacle(diagnosis).code == "InsufficientResource"


def test_a_plugin_whose_daemons_select_no_node_is_named_with_its_label() -> None:
    table = (
        "$ kubectl get ds -n card-system\n"
        "NAME                 DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR   AGE\n"
        "card-device-plugin   0         0         0       0            0           cards=yes       17m\n"
        "other                2         2         2       2            2           <none>          17m\n"
    )
    diagnosis = diagnose_text(table + "\n" + a_refusal(REFUSED), "nlp/fit-0")
    assert get_obstacle(diagnosis).code == "DevicePluginWithoutNode"
    assert diagnosis.sentence.en.endswith(": it selects nodes with the label cards=yes.")


def test_a_scheduler_without_its_image_is_not_called_silent() -> None:
    pod = (
        "$ kubectl get pod fit-0 -o yaml\napiVersion: v1\nkind: Pod\nmetadata:\n  name: fit-0\n  namespace: nlp\n"
        '  creationTimestamp: "2026-03-04T11:00:00Z"\nspec:\n  schedulerName: card-scheduler\n  containers:\n'
        "  - name: a\nstatus:\n  phase: Pending\n"
    )
    row = "card-scheduler-7b-jk   0/2     ErrImagePull   0          31m\n"
    diagnosis = diagnose_text(f"$ kubectl get po -n card-system\n{row}{pod}", "nlp/fit-0")
    assert (diagnosis.state, get_obstacle(diagnosis).code) == ("not judged", "SchedulerDown")
    assert "card-system/card-scheduler-7b-jk" in diagnosis.sentence.en


def test_an_extender_that_does_not_answer_is_explained_by_its_pod() -> None:
    words = 'Post "http://127.0.0.1:8080/filter": dial tcp 127.0.0.1:8080: connect: connection refused'
    row = "card-scheduler-7b-jk   1/2     CrashLoopBackOff   8 (2m ago)   31m\n"
    diagnosis = diagnose_text(f"$ kubectl get po -n card-system\n{row}{a_refusal(words)}", "nlp/fit-0")
    assert get_obstacle(diagnosis).code == "SchedulerDown"
    assert "could not ask its extender" in diagnosis.sentence.en
    assert "connection refused" in diagnosis.sentence.en


def test_healthy_and_waiting_rows_are_no_pods_to_answer_about() -> None:
    rows = "fit-0   1/1     Running   0          5m\nfit-1   0/1     Pending   0          5m\n"
    case = read_case_text(f"$ kubectl get po\n{rows}{a_refusal(REFUSED).replace('fit-0', 'fit-2')}")
    assert list(list_pod_names(case)) == ["nlp/fit-2"]


NODES = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n-1, annotations: {hami.io/mutex.lock: "2026-03-04T11:58:00Z,nlp,fit-9"}}
  status:
    allocatable: {cpu: "8", memory: 8Gi, pods: "9", mthreads.com/vgpu: "4"}
    conditions: [{type: Ready, status: "True"}]
- apiVersion: v1
  kind: Pod
  metadata: {name: fit-0, namespace: nlp, creationTimestamp: "2026-03-04T11:59:00Z"}
  spec:
    schedulerName: hami-scheduler
    containers: [{name: a, resources: {limits: {mthreads.com/sgpu: "2"}}}]
  status:
    phase: Pending
    conditions:
    - type: PodScheduled
      status: "False"
      reason: REASON
      lastTransitionTime: "2026-03-04T11:59:10Z"
      message: 'WORDS'
"""


def test_a_counted_resource_that_no_node_offers_is_not_waited_for() -> None:
    words = "0/1 nodes are available: 1 Insufficient mthreads.com/sgpu."
    diagnosis = diagnose_text(NODES.replace("REASON", "Unschedulable").replace("WORDS", words), "nlp/fit-0")
    obstacle = get_obstacle(diagnosis)
    assert obstacle.code == "ResourceNotOffered"
    assert "of which the pod asks for 2; nodes offer mthreads.com/vgpu (4 on 1 node)" in diagnosis.sentence.en
    assert "wait" not in obstacle.who_acts


def test_a_taint_is_quoted_without_the_rest_of_its_sentence() -> None:
    words = "0/1 nodes are available: 1 node(s) had taint {team: blue}, that the pod didn't tolerate."
    diagnosis = diagnose_text(a_refusal(words), "nlp/fit-0")
    assert diagnosis.sentence.en.endswith(": {team: blue}.")


def test_a_device_that_no_plugin_registered_is_not_the_plugins_refusal() -> None:
    words = "Allocate failed due to can't allocate unregistered device mthreads.com/vgpu, which is unexpected"
    text = f"Events:\n  Warning  UnexpectedAdmissionError  9s  kubelet, n-1  {words}\n"
    diagnosis = diagnose_text(text, "default/pod")
    assert (diagnosis.state, get_obstacle(diagnosis).code) == ("rejected", "KubeletUnregistered")
    assert "no device plugin had registered mthreads.com/vgpu" in diagnosis.sentence.en


@pytest.mark.parametrize("limit", ["5 minutes", "5m0s"])
def test_a_rejected_bind_names_the_pod_that_holds_the_lock(limit: str) -> None:
    words = f"binding rejected: node n-1 has been locked within {limit}"
    diagnosis = diagnose_text(NODES.replace("REASON", "SchedulerError").replace("WORDS", words), "nlp/fit-0")
    assert get_obstacle(diagnosis).code == "node lock contention"
    assert "nlp/fit-9" in diagnosis.sentence.en
    assert "since 11:58:00 UTC" in diagnosis.sentence.en


def test_a_bind_that_a_rule_denies_is_not_waited_for() -> None:
    words = (
        'Failed to bind pod nlp/fit-0 to node n-1: admission webhook "rules.local" denied the request: no owner label'
    )
    text = (
        "Events:\n  Normal   Scheduled     9s   kai-scheduler  Pod nlp/fit-0 was assigned to node n-1\n"
        f"  Warning  BindingError  8s   binder         {words}\n"
    )
    diagnosis = diagnose_text(text, "nlp/fit-0")
    obstacle = get_obstacle(diagnosis)
    assert obstacle.code == "BindDenied"
    assert "wait" not in obstacle.who_acts


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ('pods "a" is forbidden: violates PodSecurity "baseline:v1.30": privileged', "PodSecurityRefused"),
        (
            'pods "a" is forbidden: unable to validate against any security context constraint: []',
            "SecurityContextRefused",
        ),
        ('Internal error occurred: failed calling webhook "w.io": failed to call webhook: EOF', "WebhookUnreachable"),
        ('pods "a" is forbidden: no PriorityClass with name gold was found', "PriorityClassMissing"),
        ('admission webhook "rules.local" denied the request: no owner label', "PodDeniedByRule"),
        ('admission webhook "vgpu.hami.io" denied the request: pod has node assigned', "PodDeniedByHami"),
        ('pods "a" is forbidden: error looking up service account nlp/x', "ServiceAccountMissing"),
        ('pods "a" is forbidden: unable to validate against any pod template', "OwnerRefused"),
    ],
)
def test_the_words_that_refused_a_pod_have_a_remedy_of_their_own(words: str, code: str) -> None:
    table = EVENTS.partition("\n")[2]
    case = read_case_text(f"{table}6s          Warning   FailedCreate   job/fit   Error creating: {words}\n")
    (key,) = list_unmade(case.objects)
    (group,) = diagnose_workload(case, key).groups
    assert group.obstacle
    assert (group.obstacle.code, find_layer_of_code(code)) == (code, "queue")


WORKLOAD = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: job-fit, namespace: nlp}
spec: {queueName: lq, podSets: [{name: main, count: 4, template: {spec: {containers: [{name: a}]}}}]}
status:
  conditions:
  - {type: QuotaReserved, status: "False", reason: Pending, message: "couldn't assign flavors to pod set main: WORDS"}
"""


@pytest.mark.parametrize(
    ("words", "code", "ends"),
    [
        ("no topology domains at level: rack.example/name", "KueueTopologyLevel", "a level of the flavor's topology."),
        (
            "topology 't' allows to fit only 1 out of 4 pod(s). Total nodes: 6; excluded: nodeSelector: 2, taint: 3",
            "KueueTopology",
            ": 1 of 4 fit; of 6 nodes it leaves out nodeSelector: 2, taint: 3.",
        ),
        ("topology 't' allows to fit only -3 out of 4 pod(s)", "KueueTopology", "has room for its pods together."),
    ],
)  # fmt: skip
def test_kueues_words_about_a_topology_are_answered(words: str, code: str, ends: str) -> None:
    case = read_case_text(WORKLOAD.replace("WORDS", words.replace("'t'", '\\"t\\"')))
    (key,) = list_unmade(case.objects)
    (group,) = diagnose_workload(case, key).groups
    assert group.obstacle
    assert group.obstacle.code == code
    assert group.obstacle.sentence.en.endswith(ends)


@pytest.mark.parametrize(
    ("field", "key"),
    [("annotations", "kueue.x-k8s.io/queue-name"), ("labels", "kueue.x-k8s.io/queuename")],
)
def test_a_queue_in_the_wrong_place_is_named(field: str, key: str) -> None:
    text = (
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: fit, namespace: nlp, uid: u, {field}: {{{key}: lq}}}}\n"
        "spec: {suspend: true, parallelism: 1, template: {spec: {containers: [{name: a}]}}}\n"
    )
    case = read_case_text(text)
    (workload,) = list_unmade(case.objects)
    (group,) = diagnose_workload(case, workload).groups
    assert group.obstacle
    assert f"it names the queue lq by the {field[:-1]} {key}" in group.obstacle.sentence.en


def test_a_node_that_the_cloud_does_not_launch_is_why_the_pod_waits() -> None:
    line = '{"level":"ERROR","message":"failed launching","NodeClaim":{"name":"gpu-x"},"error":"no capacity left"}'
    rows = "8s          Normal    Nominated          pod/fit-0   Pod should schedule on: nodeclaim/gpu-x\n"
    diagnosis = diagnose_text(f"{a_refusal(REFUSED)}{rows}\n{line}\n", "nlp/fit-0")
    assert get_obstacle(diagnosis).code == "NodeNotLaunched"
    assert "claim gpu-x" in diagnosis.sentence.en
    assert "no capacity left" in diagnosis.sentence.en


def test_the_log_of_a_plugin_without_its_driver_names_the_node() -> None:
    advice = find_advice(
        [b"I0101 main.go:1] Start working on node n-7", b"E0101 factory.go:7] Failed to initialize NVML: X."]
    )
    assert "device plugin of node n-7" in advice
    assert "Failed to initialize NVML: X." in advice


def test_a_refusal_whose_nodes_were_not_read_does_not_advise_to_wait() -> None:
    obstacle = get_obstacle(diagnose_text(a_refusal(REFUSED), "nlp/fit-0"))
    assert obstacle.code == "ResourceShortOrMissing"
    assert obstacle.who_acts == ["you", "administrator"]
    assert "Allocatable" in obstacle.remedy.en
    memory = get_obstacle(diagnose_text(a_refusal("0/2 nodes are available: 2 Insufficient memory."), "nlp/fit-0"))
    assert memory.code == "InsufficientResource"
