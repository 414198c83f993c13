"""Pasted texts whose copy lost something: names, columns, ends of lines; and conditions that repeat others' words."""

from textwrap import dedent

import pytest

from engine.cases.unmade_causes import list_unmade
from ingest.cases.answers import diagnose_pods
from ingest.cases.foreign_texts import find_advice
from ingest.cases.pasted_fragments import build_from_status, join_wrapped
from ingest.cases.pasted_rows import parse_row, parse_statement
from ingest.cases.read_case import list_pod_names, read_case_text
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Diagnosis, Obstacle

REFUSED = "0/6 nodes are available: 6 Insufficient cpu."
ALLOCATE = "Allocate failed due to rpc error: code = Unavailable desc = socket closed, which is unexpected"


def diagnose_text(text: str) -> Diagnosis:
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    return answer.diagnosis


def get_obstacle(text: str) -> Obstacle:
    obstacle = diagnose_text(text).obstacle
    assert obstacle
    return obstacle


def diagnose_maker(text: str) -> tuple[str, Obstacle]:
    case = read_case_text(text)
    (key,) = list_unmade(case.objects)
    (group,) = diagnose_workload(case, key).groups
    assert group.obstacle
    return str(key), group.obstacle


@pytest.mark.parametrize(
    ("line", "reason", "is_warning"),
    [
        (f"3. `FailedScheduling  7s (x2 over 9m)  default-scheduler   {REFUSED}`", "FailedScheduling", True),
        ("2) `Normal   TriggeredScaleUp  4m   cluster-autoscaler  pod triggered scale-up`", "TriggeredScaleUp", False),
        (f"- **Warning  FailedScheduling  1s  default-scheduler  {REFUSED}**", "FailedScheduling", True),
        ("TriggeredScaleUp  9s  cluster-autoscaler  pod triggered scale-up: [{g 0->1}]", "TriggeredScaleUp", False),
    ],
)
def test_a_row_in_a_list_of_markdown_is_an_event(line: str, reason: str, *, is_warning: bool) -> None:
    event = parse_row(line)
    assert event
    assert (event.reason, event.is_warning) == (reason, is_warning)
    assert not event.note.endswith(("`", "*"))


def test_words_behind_a_closing_quotation_mark_are_somebody_elses() -> None:
    event = parse_statement(f"创建后报错“{REFUSED}”请问怎么解决？")
    assert event
    assert event.note == REFUSED


def test_the_kubelet_of_an_old_table_names_its_node() -> None:
    obstacle = get_obstacle(f"Warning  UnexpectedAdmissionError  3m         kubelet, rack-2  {ALLOCATE}\n")
    assert obstacle.code == "KubeletPluginFailed"
    assert "rack-2" in obstacle.sentence.en


@pytest.mark.parametrize(
    ("line", "following", "joined"),
    [
        ("x" * 98 + " bi", "nding failed", "x" * 98 + " binding failed"),
        ("x" * 70, "nding failed", "x" * 70),
        ("x" * 98 + " bi", "Warning", "x" * 98 + " bi"),
    ],
)
def test_a_line_that_ends_at_the_width_of_the_terminal_continues(line: str, following: str, joined: str) -> None:
    assert join_wrapped(line, following, 101) == joined


def test_an_event_without_a_name_is_about_the_only_manifest_of_the_text() -> None:
    text = f"""\
        I get this:
        `Warning  UnexpectedAdmissionError  2s   kubelet  {ALLOCATE}`
        ```yaml
        apiVersion: v1
        kind: Pod
        metadata: {{name: probe, namespace: lab}}
        spec:
          nodeName: rack-7
          containers: [{{name: a, image: i, resources: {{limits: {{nvidia.com/gpu: 2}}}}}}]
        ```
        """
    diagnosis = diagnose_text(dedent(text))
    assert (diagnosis.namespace, diagnosis.name) == ("lab", "probe")
    assert diagnosis.obstacle
    assert "rack-7" in diagnosis.obstacle.sentence.en
    assert "`nodeName`" in diagnosis.obstacle.sentence.en


DESCRIBED = """\
Status:           Failed
Reason:           UnexpectedAdmissionError
Message:          Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 3, Available: 1, which is unexpected
Containers:
  a:
    Image:      i
    Limits:
      nvidia.com/gpu:       3
      nvidia.com/gpucores:  40
Events:
  Type     Reason     Age   From                Message
  ----     ------     ----  ----                -------
  Normal   Scheduled  40s   {scheduler}   Successfully assigned lab/probe to rack-3
"""  # noqa: E501 - as kubectl writes it


@pytest.mark.parametrize(
    ("scheduler", "code"), [("default-scheduler", "KubeletShareUnbooked"), ("hami-scheduler", "KubeletLacksDevices")]
)
def test_a_description_without_its_name_has_the_name_that_its_event_gives(scheduler: str, code: str) -> None:
    diagnosis = diagnose_text(DESCRIBED.format(scheduler=scheduler))
    assert (diagnosis.name, diagnosis.obstacle and diagnosis.obstacle.code) == ("probe", code)
    assert diagnosis.obstacle
    assert "rack-3" in diagnosis.obstacle.sentence.en


def test_amounts_of_a_node_without_its_name_show_what_it_offers() -> None:
    text = """\
        0/1 nodes are available: 1 Insufficient huawei.com/Ascend310P-memory.

        Capacity:
          cpu:                    8
          huawei.com/Ascend910B4: 16
        """
    obstacle = get_obstacle(dedent(text))
    assert obstacle.code == "ResourceOfExtender"
    assert "huawei.com/Ascend910B4 (16 on 1 node)" in obstacle.sentence.en


def test_a_text_that_is_indented_as_a_block_is_read_as_it_was() -> None:
    text = "\n".join(f"    {line}" for line in DESCRIBED.format(scheduler="default-scheduler").split("\n"))
    assert get_obstacle(text).code == "KubeletShareUnbooked"


def test_conditions_alone_are_those_of_the_pod_of_the_command() -> None:
    conditions = f'[{{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"{REFUSED}"'
    text = (
        f"me@host:~$ kubectl get pod probe -o jsonpath='{{.status.conditions}}'\n"
        f'{conditions},"lastTransitionTime":"2026-03-04T12:00:00Z"}}]\n'
    )
    diagnosis = diagnose_text(text)
    assert (diagnosis.name, diagnosis.obstacle and diagnosis.obstacle.code) == ("probe", "InsufficientResource")


@pytest.mark.parametrize(
    ("words", "code", "names"),
    [
        ('MountVolume.SetUp failed for volume "c" : secret "tls-9" not found', "MountedObjectMissing", "Secret tls-9"),
        ('MountVolume.SetUp failed for volume "c" : configmap "cm" not found', "MountedObjectMissing", "ConfigMap cm"),
        ('Multi-Attach error for volume "v" Volume is already used by pod(s) o-1', "VolumeAttachedElsewhere", "o-1"),
        (
            'Multi-Attach error for volume "pv-4" Volume is already exclusively attached to one node',
            "VolumeAttachedElsewhere",
            "a pod on another node",
        ),
        ("driver name nfs.csi not found in the list of registered CSI drivers", "VolumeNotMounted", "nfs.csi"),
    ],
)  # fmt: skip
def test_a_volume_that_cant_be_mounted_names_what_is_in_its_way(words: str, code: str, names: str) -> None:
    reporter = "attachdetach-controller" if "Multi" in words else "kubelet"
    reason = "FailedAttachVolume" if "Multi" in words else "FailedMount"
    text = f"""\
        Normal   Scheduled    5m   default-scheduler  Successfully assigned lab/probe to rack-1
        Warning  {reason}  4m   {reporter}  {words}
        Warning  FailedMount  1m   kubelet  Unable to attach or mount volumes: timed out waiting for the condition
        """
    obstacle = get_obstacle(dedent(text))
    assert obstacle.code == code
    assert names in obstacle.sentence.en


def test_the_cause_of_a_claim_that_cant_be_prepared_is_quoted_without_its_layers() -> None:
    text = """\
        Normal   Scheduled    5m   default-scheduler  Successfully assigned lab/probe to rack-1
        Warning  FailedPrepareDynamicResources  4s  kubelet  Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for claim lab/a-imex: error preparing devices for claim 'lab/a-imex:1f': prepare devices failed: error applying config: error asserting ComputeDomain Ready: node absent
        """  # noqa: E501
    obstacle = get_obstacle(dedent(text))
    assert obstacle.code == "ComputeDomainNotReady"
    assert obstacle.sentence.en.endswith(
        "FailedPrepareDynamicResources: error asserting ComputeDomain Ready: node absent."
    )


def test_a_manifest_that_the_api_server_finds_invalid_made_no_pod() -> None:
    obstacle = get_obstacle('$ k create -f p.yaml\nThe Pod "probe" is invalid: spec.containers: Required value\n')
    assert obstacle.code == "PodInvalid"
    assert "spec.containers: Required value" in obstacle.sentence.en


def test_an_operators_error_is_about_the_object_that_its_fields_name() -> None:
    error = 'pods \\"ring-0\\" is forbidden: exceeded quota: q, requested: cpu=5, used: cpu=6, limited: cpu=10'
    fields = f'{{"controllerKind": "PyTorchJob", "name": "ring", "namespace": "lab", "error": "{error}"}}'
    name, obstacle = diagnose_maker(f"2026-03-04T12:00:00Z\tERROR\tReconciler error\t{fields}\n")
    assert (name, obstacle.code) == ("PyTorchJob/ring", "QuotaExceeded")
    assert "cpu 6 of 10 used, 5 asked" in obstacle.sentence.en


def test_a_condition_that_repeats_a_schedulers_words_is_about_a_pod_of_its_object() -> None:
    text = f"""\
        apiVersion: serving.kserve.io/v1beta1
        kind: InferenceService
        metadata: {{name: chat, namespace: lab}}
        status:
          conditions:
          - {{type: Ready, status: "False", reason: X, message: 'Revision "chat-7" failed with message: {REFUSED}'}}
        """
    diagnosis = diagnose_text(dedent(text))
    assert (diagnosis.name, diagnosis.obstacle and diagnosis.obstacle.code) == ("chat", "InsufficientResource")


def test_an_admitted_workload_whose_job_is_suspended_waits_for_no_quota() -> None:
    text = """\
        $ kubectl get workloads -n lab
        NAME              QUEUE   RESERVED IN   ADMITTED   FINISHED   AGE
        job-fit-0a1b2     users   gpus          True                  9m

        $ kubectl get jobs -n lab
        NAME   STATUS      COMPLETIONS   DURATION   AGE
        done   Complete    1/1           4s         64m
        fit    Suspended   0/2                      9m
        """
    name, obstacle = diagnose_maker(dedent(text))
    assert (name, obstacle.code) == ("Job/fit", "KueueAdmittedSuspended")
    assert "ClusterQueue gpus" in obstacle.sentence.en


def test_kais_first_words_count_nodes() -> None:
    words = "No nodes with enough resources were found: 3 node(s) didn't have enough resources: GPUs. 1 node(s) didn't have enough resources: memory."  # noqa: E501
    obstacle = get_obstacle(f"Warning  Unschedulable  kai-scheduler  {words}\n")
    assert obstacle.code == "ResourceShortOrMissing"
    assert obstacle.sentence.en.startswith("3 of 3 nodes have too little nvidia.com/gpu left")


def test_mindclusters_plugin_is_named() -> None:
    words = "node check failed. for details,log by search keywords <checkNodeNPUByTask : x> in volcano's log"
    assert get_obstacle(f"0/2 nodes are unavailable: 2 {words}.\n").code == "NpuPluginRefused"


@pytest.mark.parametrize(
    "words",
    [
        "unknown flag: --policy-config-file",
        'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta2"',
    ],
)
def test_a_program_that_does_not_start_is_named(words: str) -> None:
    advice = find_advice([b"Usage:", b"  kube-scheduler [flags]", b"", b"Error: " + words.encode()])
    assert "kube-scheduler, which does not start" in advice
    assert words in advice


def test_a_description_with_a_schedulers_refusal_is_that_of_a_pod() -> None:
    text = f"""\
        Name:         probe
        Namespace:    lab
        Events:
          Type     Reason            Age  From     Message
          ----     ------            ---  ----     -------
          Warning  FailedScheduling  20s  volcano  {REFUSED}
        """
    assert get_obstacle(dedent(text)).code == "InsufficientResource"


def test_conditions_are_those_of_the_kind_that_has_them() -> None:
    workload = build_from_status([{"type": "QuotaReserved", "status": "False"}], "probe")
    assert workload
    assert workload["kind"] == "Workload"
    conditions = [
        {"type": "Initialized", "status": "Unknown", "reason": "ResourceNotRegistered", "message": "x is missing"},
        {"type": "Registered", "status": "True"},
        {"type": "Launched", "status": "True"},
    ]
    event = build_from_status(conditions, "probe")
    assert event
    assert (event["involvedObject"]["kind"], event["message"]) == ("NodeClaim", "x is missing")
    assert build_from_status([{"type": "Available", "status": "False", "message": "x"}], "probe") is None


def test_a_description_that_ends_before_the_containers_is_that_of_a_pod() -> None:
    text = f"""\
        Name:             probe
        Namespace:        lab
        Priority:         0
        Node:             rack-5/10.0.0.5
        Status:           Failed
        Reason:           UnexpectedAdmissionError
        Message:          Pod was rejected: {ALLOCATE}
        """
    obstacle = get_obstacle(dedent(text))
    assert obstacle.code == "KubeletPluginFailed"
    assert "rack-5" in obstacle.sentence.en


def test_the_words_that_a_queue_is_inactive_lead_to_its_condition() -> None:
    text = """\
        apiVersion: v1
        kind: List
        items:
        - apiVersion: kueue.x-k8s.io/v1beta1
          kind: ClusterQueue
          metadata: {name: gpus}
          status: {conditions: [{type: Active, status: "False", reason: FlavorNotFound, message: "missing flavor x9"}]}
        - apiVersion: kueue.x-k8s.io/v1beta1
          kind: Workload
          metadata: {name: job-fit-0a1b2, namespace: lab}
          spec: {queueName: users, podSets: [{name: main, count: 1, template: {spec: {containers: [{name: a}]}}}]}
          status: {conditions: [{type: QuotaReserved, status: "False", message: "ClusterQueue gpus is inactive"}]}
        """
    _, obstacle = diagnose_maker(dedent(text))
    assert obstacle.code == "KueueQueueBroken"
    assert "missing flavor x9" in obstacle.sentence.en


def test_measured_load_is_no_request() -> None:
    obstacle = get_obstacle("0/5 nodes are available: 5 node(s) cpu usage exceed threshold.\n")
    assert obstacle.code == "NodeLoadTooHigh"
    assert obstacle.who_acts == ["wait", "administrator"]


def test_an_attempt_whose_end_the_log_lacks_has_no_amounts() -> None:
    log = """\
        I0901 02:42:11.700310       1 scheduler.go:517] "Starting schedule filter process" pod="a" uuid="u" namespace="lab"
        I0901 02:42:11.700500       1 devices.go:503] "Resource requirements collected" pod="lab/a" requests=[{"NVIDIA":{"Nums":1,"Type":"NVIDIA","Memreq":700,"MemPercentagereq":101,"Coresreq":0}}]
        I0901 02:42:11.701003       1 score.go:166] "NodeUnfitPod" pod="lab/a" node="q" reason="4/4 CardInsufficientMemory"
        """  # noqa: E501 - as HAMi writes them
    assert get_obstacle(dedent(log)).sentence.en == "The only node lacks memory."


def test_the_state_of_a_container_is_that_of_a_pod_on_a_node() -> None:
    text = """\
        It fails:
        ```
         state:
           waiting:
             message: 'failed to create containerd container: CDI device injection failed: unresolvable CDI devices a'
             reason: CreateContainerError
        ```
    """
    obstacle = get_obstacle(dedent(text))
    assert "unresolvable CDI devices a" in obstacle.sentence.en


def test_a_kubelets_words_are_joined_where_a_terminal_broke_them() -> None:
    text = "Warning  UnexpectedAdmissionError  1m  kubelet, edge-4  Allocate failed due to rpc error: desc = no b\n"
    obstacle = get_obstacle(f"{text}inding pod found on node edge-4, which is unexpected\n")
    assert obstacle.code == "KubeletPluginUnbound"


def test_a_sentence_ends_before_chinese_words_and_an_unknown_node_has_no_name() -> None:
    words = "Allocate failed due to requested number of devices unavailable for a.com/x. Requested: 1, Available: 0"
    obstacle = get_obstacle(f"具体信息是{words}, which is unexpected。但当我删除时，能够成功调度")
    assert all("但" not in evidence.words for evidence in obstacle.evidence)
    assert "describe node <node>" in obstacle.remedy.en


def test_words_about_a_group_in_its_jobs_event_name_it() -> None:
    key, obstacle = diagnose_maker(
        "lab:sim unschedule,reason: 1/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable"
    )
    assert (key, obstacle.code) == ("PodGroup/sim", "GroupNotPlaced")
