"""Objects that hold pods back, given without any pod: queues, pod groups and Workloads."""

from datetime import UTC, datetime
from textwrap import dedent

from engine.cases.unmade_causes import list_unmade
from engine.cases.workloads import find_workloads
from ingest.cases.answers import explain_emptiness
from ingest.cases.read_case import ClusterCase, build_case, read_case_text
from ingest.cases.workload_answers import diagnose_workload


def read_text(text: str) -> ClusterCase:
    return read_case_text(dedent(text).strip("\n") + "\n")


def test_a_queue_that_takes_nothing_is_explained_without_a_workload() -> None:
    text = """
        Name:         gpus
        Namespace:
        API Version:  kueue.x-k8s.io/v1beta1
        Kind:         ClusterQueue
        Status:
          Conditions:
            Last Transition Time:  2026-08-15T09:12:00Z
            Message:               Can't admit new workloads: references missing AdmissionCheck(s): prov.
            Reason:                AdmissionCheckNotFound
            Status:                False
            Type:                  Active
        """
    words = explain_emptiness("q.txt", read_text(text))
    assert "ClusterQueue gpus can't admit anything" in words
    assert "missing AdmissionCheck(s): prov" in words
    assert "Waiting does not help" in words


def test_a_pending_group_without_conditions_is_explained_by_its_events() -> None:
    text = """
        Name:         batch-1
        Namespace:    nlp
        API Version:  scheduling.volcano.sh/v1beta1
        Kind:         PodGroup
        Spec:
          Min Member:  2
          Queue:       nlp-q
        Status:
          Phase:  Pending
        Events:
          Type    Reason         Age                From     Message
          ----    ------         ----               ----     -------
          Normal  Unschedulable  9s (x4 over 60s)   volcano  queue resource quota insufficient
        """
    case = read_text(text)
    (group,) = list_unmade(case.objects)
    (answer,) = diagnose_workload(case, group).groups
    assert answer.obstacle
    assert "of queue nlp-q: queue resource quota insufficient" in answer.obstacle.sentence.en


def test_a_workload_that_was_taken_back_is_not_an_admitted_one() -> None:
    conditions = "\n".join(
        f"  - {{type: {name}, status: '{status}', reason: {reason}, message: m, lastTransitionTime: '{time}'}}"
        for name, status, reason, time in (
            ("QuotaReserved", "True", "QuotaReserved", "2026-03-01T01:00:00Z"),
            ("Admitted", "True", "Admitted", "2026-03-01T01:00:00Z"),
            ("Evicted", "True", "PodsReadyTimeout", "2026-03-01T02:00:00Z"),
        )
    )
    case = read_case_text(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {name: w, namespace: nlp}\n"
        f"spec: {{queueName: q, podSets: [{{name: a, count: 2}}]}}\nstatus:\n  conditions:\n{conditions}\n"
    )
    (workload,) = list_unmade(case.objects)
    (answer,) = diagnose_workload(case, workload).groups
    assert answer.obstacle
    assert answer.obstacle.code == "KueuePodsNotReady"


def test_a_group_that_volcanos_log_refuses_as_a_whole_is_named_with_the_reason() -> None:
    text = """
        I0811 07:17:34.064198 1 enqueue.go:79] Try to enqueue PodGroup to 1 Queues
        I0811 07:17:34.064205 1 overcommit.go:114] Resource in cluster is overused, reject job <nlp/fit> to be inqueue
        """
    case = read_text(text)
    (group,) = list_unmade(case.objects)
    (answer,) = diagnose_workload(case, group).groups
    assert (group.namespace, group.name) == ("nlp", "fit")
    assert answer.obstacle
    assert "resource in cluster is overused" in answer.obstacle.sentence.en
    assert "queue" not in answer.obstacle.sentence.en


_WORDS_ABOUT_A_GROUP = """Events:
  Type     Reason         Age                 From     Message
  ----     ------         ----                ----     -------
  Warning  Unschedulable  9s (x4 over 20s)    volcano  0/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable
  Normal   Unschedulable  8s (x5 over 20s)    volcano  queue resource quota insufficient: insufficient nvidia.com/gpu
"""  # noqa: E501


def test_words_about_a_group_without_a_name_are_about_the_only_volcano_job_of_the_text() -> None:
    text = f"""The job:

```yaml
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: sim, namespace: lab}}
spec:
  minAvailable: 2
  queue: night
  schedulerName: volcano
  tasks:
  - replicas: 2
    name: main
    template: {{spec: {{containers: [{{name: main, image: sim}}]}}}}
```

Its pod group has these events:

{_WORDS_ABOUT_A_GROUP}"""
    case = read_case_text(text)
    (key,) = find_workloads(case.objects, "job", "sim")
    (answer,) = diagnose_workload(case, key).groups
    assert answer.obstacle
    assert answer.obstacle.code == "GroupNotEnqueued"
    assert "queue night" in answer.obstacle.sentence.en
    assert "nvidia.com/gpu" in answer.obstacle.sentence.en


def test_words_about_a_group_without_a_name_are_about_none_of_several() -> None:
    jobs = "".join(
        f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: {name}, namespace: lab}}\n"
        "spec: {minAvailable: 1, queue: night, tasks: []}\n---\n"
        for name in ("sim", "fit")
    )
    case = read_case_text(f"```yaml\n{jobs}```\n\n{_WORDS_ABOUT_A_GROUP}")
    for name in ("sim", "fit"):
        (key,) = find_workloads(case.objects, "job", name)
        (answer,) = diagnose_workload(case, key).groups
        assert answer.obstacle
        assert answer.obstacle.code == "NotFromCluster"


def test_a_group_of_volcanos_former_api_is_a_group() -> None:
    case = build_case(
        [
            {
                "apiVersion": "scheduling.incubator.k8s.io/v1alpha1", "kind": "PodGroup",
                "metadata": {"namespace": "lab", "name": "ring", "uid": "1"},
                "spec": {"minMember": 5},
                "status": {
                    "conditions": [
                        {
                            "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources",
                            "message": "5/2 tasks in gang unschedulable: job is not ready, 5 minAvailable.",
                        }
                    ]
                },
            }
        ],
        (),
        datetime(2026, 11, 20, tzinfo=UTC),
    )  # fmt: skip
    (key,) = find_workloads(case.objects, "podgroup", "ring")
    (answer,) = diagnose_workload(case, key).groups
    assert answer.obstacle
    assert "ring" in answer.obstacle.sentence.en
    assert "5 minAvailable" in answer.obstacle.sentence.en


def test_the_words_of_an_event_are_quoted_as_they_are() -> None:
    involved = {"kind": "PersistentVolumeClaim", "namespace": "nlp", "name": "data"}
    note = "mount of /srv/data failed"
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "nlp"}, "type": "Warning",
        "reason": "ProvisioningFailed", "message": note, "involvedObject": involved, "source": {"component": "csi"},
        "lastTimestamp": "2026-03-04T12:00:00Z",
    }  # fmt: skip
    words = explain_emptiness("e.yaml", build_case([event], (), datetime(2026, 3, 4, 12, tzinfo=UTC)))
    assert f"PersistentVolumeClaim nlp/data: ProvisioningFailed: {note}" in words
