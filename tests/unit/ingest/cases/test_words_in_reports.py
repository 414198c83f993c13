"""Words of schedulers, kubelets, autoscalers and the API server as people put them into a report."""

import pytest

from engine.cases.unmade_causes import list_unmade
from ingest.cases.answers import diagnose_pods
from ingest.cases.foreign_texts import find_advice
from ingest.cases.read_case import list_pod_names, read_case_text
from ingest.cases.stopped_queues import list_stopped_queues
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Diagnosis


def diagnose_text(text: str) -> Diagnosis:
    case = read_case_text(text)
    (answer,) = diagnose_pods(case, list_pod_names(case))
    return answer.diagnosis


def get_codes(diagnosis: Diagnosis) -> list[str]:
    assert diagnosis.obstacle is not None
    return [diagnosis.obstacle.code, *(other.code for other in diagnosis.other_obstacles)]


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (
            (
                "0/6 nodes are available: 2 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
                "4 node unregistered. preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."
            ),
            ["node unregistered", "ControlPlaneTaint"],
        ),
        (
            (
                "0/3 nodes are available: 2 node(s) had taint {node-role.kubernetes.io/master: }, that the pod didn't "
                "tolerate, 1 node(s) didn't match node selector."
            ),
            ["AffinityMismatch", "ControlPlaneTaint"],
        ),
        (
            (
                "0/9 nodes are available: 3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
                "1 node(s) had untolerated taint {team: infra}, 5 node unregistered."
            ),
            ["TaintNotTolerated", "node unregistered", "ControlPlaneTaint"],
        ),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }.",
            ["ControlPlaneTaint"],
        ),
        (
            "0/3 nodes are available: 2 node(s) had untolerated taint {dedicated: infra}, 1 node unregistered.",
            ["TaintNotTolerated", "node unregistered"],
        ),
    ],
)
def test_the_taint_of_the_control_plane_comes_after_what_other_nodes_refuse(words: str, codes: list[str]) -> None:
    assert get_codes(diagnose_text(f"  Warning  FailedScheduling  19s   default-scheduler  {words}\n")) == codes


def test_what_preemption_found_is_no_reason_of_nodes() -> None:
    diagnosis = diagnose_text(
        'x-7kq2p" err="0/4 nodes are available: 1 Insufficient memory, 3 node(s) didn\'t match node selector."\n\n'
        "status=&{\ncode:2\nreasons:[0/4 nodes are available: 4 No preemption victims found for incoming pod.]}\n"
    )
    assert get_codes(diagnosis) == ["InsufficientResource", "AffinityMismatch"]


def test_nodes_that_old_schedulers_named_are_read_with_their_reasons() -> None:
    diagnosis = diagnose_text(
        "  1m  1m  1  {default-scheduler }  Warning  FailedScheduling  pod (web-0) failed to fit in any node\n"
        "fit failure on node (n1): MatchNodeSelector\n"
        "fit failure on node (n2): Insufficient memory\n"
    )
    assert diagnosis.name == "web-0"
    assert get_codes(diagnosis) == ["InsufficientResource", "AffinityMismatch"]
    assert diagnosis.sentence.en == "1 of 2 nodes has too little memory left."


def test_counts_of_kube_scheduler_1_5_stand_behind_their_reasons() -> None:
    # Kubernetes' guide on extended resources has this event.
    diagnosis = diagnose_text(
        "  Warning   FailedScheduling  5s  default-scheduler  "
        "pod (extended-resource-demo-2) failed to fit in any node\n"
        "fit failure summary on nodes : Insufficient example.com/dongle (1)\n"
    )
    assert diagnosis.name == "extended-resource-demo-2"
    assert get_codes(diagnosis) == ["ResourceShortOrMissing"]
    assert "example.com/dongle" in diagnosis.sentence.en


def test_yunikorn_holds_a_pod_whatever_the_number_of_nodes() -> None:
    diagnosis = diagnose_text(
        'The session got stuck with "Unschedulable: 0/4 nodes are available: 4 Pod is not ready for scheduling."\n'
        "Its log: ml/session-x7-0 is queued and waiting for allocation\n"
    )
    assert (diagnosis.namespace, diagnosis.name) == ("ml", "session-x7-0")
    assert get_codes(diagnosis) == ["YunikornHolds"]


def test_a_kubelet_writes_the_resource_into_the_reason_and_its_node_beside_its_name() -> None:
    diagnosis = diagnose_text(
        "$ kubectl get pods\n"
        "NAME      READY   STATUS                RESTARTS   AGE\n"
        "train-0   0/1     OutOfnvidia.com/gpu   0          3m\n\n"
        "Events:\n"
        "  Warning  OutOfnvidia.com/gpu  3m  kubelet, gpu-3  Node didn't have enough resource: nvidia.com/gpu, "
        "requested: 2, used: 7, capacity: 8\n"
    )
    assert (diagnosis.state, get_codes(diagnosis)[0]) == ("rejected", "KubeletOutOfResource")
    assert (
        "The kubelet of node gpu-3 refused the pod (OutOfnvidia.com/gpu): 2 of nvidia.com/gpu" in diagnosis.sentence.en
    )
    assert [wait for wait in diagnosis.waits if wait.until is None] == []


@pytest.mark.parametrize("cause", ["GCE out of resources", "GCE quota exceeded", "Internal error"])
def test_a_failed_scale_up_of_gke_is_read_inside_a_sentence(cause: str) -> None:
    diagnosis = diagnose_text(
        "Since we moved the deployment to the other region the console of the cluster says about it that Node scale "
        f"up in zones europe-west4-a, europe-west4-b associated with this pod failed: {cause}. Pod is at risk of not "
        "being scheduled. I have no idea why.\n"
    )
    assert get_codes(diagnosis) == ["AutoscalerFailed"]
    assert diagnosis.sentence.en.endswith(f"europe-west4-a, europe-west4-b associated with this pod failed: {cause}.")


def test_codes_of_hami_are_read_as_people_retype_them() -> None:
    diagnosis = diagnose_text(
        "If a pod of ours asks for two cards, the scheduler reports errors including 2nodes CardInsufficientMemory "
        "(gpu-1, gpu-2) and nothing else.\n"
    )
    assert diagnosis.obstacle is not None
    assert (diagnosis.obstacle.code, list(diagnosis.obstacle.nodes)) == ("CardInsufficientMemory", ["gpu-1", "gpu-2"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            (
                "`kubectl describe clusterqueue gpu-cq` shows\n"
                "    Message:  Can't admit new workloads: references missing AdmissionCheck(s): prov.\n"
                "    Reason:   AdmissionCheckNotFound\n    Status:   False\n    Type:     Active\n"
            ),
            "ClusterQueue gpu-cq",
        ),
        (
            (
                "Our ClusterQueue becomes inactive:\n\nType: Active\nStatus: False\nReason: AdmissionCheckNotFound\n"
                "Message: Can't admit new workloads: references missing AdmissionCheck(s): prov.\n"
            ),
            "its ClusterQueue",
        ),
    ],
)
def test_a_stopped_queue_is_known_by_the_fields_of_its_condition(text: str, name: str) -> None:
    (queue,) = list_stopped_queues(text.split("\n"))
    assert queue["metadata"] == {"name": "gpu-cq" if "gpu-cq" in name else "?"}
    assert queue["status"] == {
        "conditions": [
            {
                "type": "Active",
                "status": "False",
                "reason": "AdmissionCheckNotFound",
                "message": "Can't admit new workloads: references missing AdmissionCheck(s): prov.",
            }
        ]
    }


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (
            (
                'The Deployment "web" is invalid: spec.template.spec.resources.requests[amd.com/gpu]: '
                'Unsupported value: "amd.com/gpu": supported values: "cpu", "hugepages-", "memory"'
            ),
            "devices belong into `resources.limits` of a container",
        ),
        (
            (
                'The Pod "p" is invalid: spec.resourceClaims[1]: Invalid value: {"Name":"g"}: must specify one of: '
                "`resourceClaimName`, `resourceClaimTemplateName`"
            ),
            "no longer under `source`",
        ),
        ('The Pod "p" is invalid: spec.containers[0].image: Required value', ""),
    ],
)
def test_the_api_server_refuses_a_manifest_for_what_the_words_mean(words: str, advice: str) -> None:
    case = read_case_text(f"kubectl apply -f x.yaml\n{words}\n")
    pods = [answer.diagnosis.sentence.en for answer in diagnose_pods(case, list_pod_names(case))]
    workloads = [diagnose_workload(case, key).sentence.en for key in list_unmade(case.objects)]
    (sentence,) = pods or workloads
    assert "the API server finds its manifest invalid" in sentence
    assert advice in sentence
    assert ("belong into" in sentence) is ("belong into" in advice)


def test_koordinators_words_name_the_member_of_a_gang() -> None:
    diagnosis = diagnose_text(
        'the log says: running PreFilter plugin "Coscheduling": gang child pod not collect enough, gangName: ml/g1, '
        "podName: ml/g1-worker-3\n gang rejection by another ganggroup\n"
    )
    assert (diagnosis.namespace, diagnosis.name) == ("ml", "g1-worker-3")
    assert get_codes(diagnosis) == ["GangIncomplete"]


def test_karpenters_line_is_read_although_its_end_is_missing() -> None:
    diagnosis = diagnose_text(
        '{"level":"ERROR","logger":"provisioner","message":"could not schedule pod","error":"incompatible with '
        'nodepool \\"gpu\\", daemonset overhead={\\"cpu\\":\\"1\\"}, did not tolerate nvidia.com/gpu=true:NoSchedule; '
        'incompatible with nodepool \\"cpu\\", daemonset overh\n'
    )
    assert get_codes(diagnosis) == ["AutoscalerCannot"]
    assert "nvidia.com/gpu=true:NoSchedule" in diagnosis.sentence.en


def test_karpenter_before_v0_8_names_the_pod_between_brackets() -> None:
    diagnosis = diagnose_text(
        "2022-03-01T08:00:00.100Z  ERROR  controller.provisioning  Failed to find instance type option(s) for "
        '[ml/train-0]  {"commit": "fb1d2f6", "provisioner": "gpu"}\n'
    )
    assert (diagnosis.namespace, diagnosis.name, get_codes(diagnosis)) == ("ml", "train-0", ["AutoscalerCannot"])


def test_the_autoscaler_names_its_template_before_the_reason() -> None:
    diagnosis = diagnose_text(
        "I0529 07:31:39.372369  11 utils.go:197] Pod build-7 can't be scheduled on gpu-pool, predicate failed: "
        "PodFitsResources predicate mismatch, cannot put ci/build-7 on gpu-pool-template-74, reason: Insufficient cpu\n"
    )
    assert "a new node of gpu-pool (Insufficient cpu) would be refused" in diagnosis.sentence.en


def test_a_pod_that_is_being_deleted_waits_for_no_node() -> None:
    diagnosis = diagnose_text("3s  Warning  FailedScheduling  pod/run-1  skip schedule deleting pod: default/run-1\n")
    assert get_codes(diagnosis) == ["PodBeingDeleted"]


def test_yunikorns_log_leads_to_the_events_of_the_pod() -> None:
    # Of YuniKorn's guide on troubleshooting.
    lines = (
        (
            b'2023-10-05T10:00:02.224Z  INFO cache/context.go:832 task added  {"appID": "yunikorn-dex-app-autogen", '
            b'"taskID": "849b762d-68c7-4cce-96e1-5acb545a8620", "taskState": "New"}'
        ),
    )
    assert find_advice(lines).startswith("It is the log of YuniKorn, which names a pod by its UID")


def test_the_whole_words_hold_where_a_copy_ends_too_early() -> None:
    words = (
        "Pod Allocate failed due to requested number of devices unavailable for amd.com/gpu. "
        "Requested: 2, Available: 1, which is unexpected"
    )
    line = 'pod "train-0" failed with reason: "UnexpectedAdmissionError", message: "'
    diagnosis = diagnose_text(f'{line}{words}"\n{line}{words[:74]}\n')
    assert get_codes(diagnosis)[0] == "KubeletLacksDevices"
    assert "2 of amd.com/gpu asked, 1 available" in diagnosis.sentence.en


def test_links_that_an_editor_makes_of_names_are_names() -> None:
    diagnosis = diagnose_text(
        "0/2 nodes are available: 1 Insufficient [amd.com/gpu](http://amd.com/gpu), 1 node(s) had untolerated taint "
        "{[example.com/team](http://example.com/team): ml}.\n"
    )
    assert get_codes(diagnosis) == ["ResourceShortOrMissing", "TaintNotTolerated"]
    assert "http" not in diagnosis.sentence.en + diagnosis.other_obstacles[0].sentence.en


def test_events_of_end_to_end_tests_name_their_pod() -> None:
    diagnosis = diagnose_text(
        "INFO: At 2024-07-25 07:39:30 +0000 UTC - event for cuda-add: {default-scheduler } FailedScheduling: "
        "0/3 nodes are available: 3 Insufficient memory.\n"
        "INFO: At 2024-07-25 07:39:31 +0000 UTC - event for installer: {daemonset-controller } FailedPlacement: no\n"
    )
    assert (diagnosis.name, get_codes(diagnosis)) == ("cuda-add", ["InsufficientResource"])
