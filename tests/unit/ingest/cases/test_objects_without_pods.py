"""Objects that hold pods back, given without any pod: queues, pod groups and Workloads."""

from textwrap import dedent

from engine.cases.unmade_causes import list_unmade
from ingest.cases.answers import explain_emptiness
from ingest.cases.read_case import ClusterCase, read_case_text
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
