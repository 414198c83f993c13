"""Which pods wait: what an observation after the latest attempt says of it, and the groups by workload."""

from typing import Any

import pytest

from api.index.waiting_pods import WaitingPods, has_left, pending
from schemas.answers.waiting import PodWaiting

AT, BEFORE, LATER = (f"2026-11-21T03:0{minute}:00.000000Z" for minute in (6, 5, 7))
ATTEMPT = {"@timestamp": AT, "pod_uid": "u1"}


@pytest.mark.parametrize(
    ("observed", "left"),
    [
        (None, False),
        ({"@timestamp": LATER, "pod_uid": "u1", "phase": "Pending", "node": ""}, False),
        ({"@timestamp": LATER, "pod_uid": "u1", "phase": "Pending", "node": "node1"}, True),
        ({"@timestamp": BEFORE, "pod_uid": "u1", "phase": "Pending", "node": "node1"}, False),
        ({"@timestamp": LATER, "pod_uid": "u1", "phase": "Pending", "event": {"deleted": True}}, True),
        ({"@timestamp": LATER, "pod_uid": "u1", "phase": "Failed"}, True),
        ({"@timestamp": LATER, "pod_uid": "u2", "phase": "Pending", "node": ""}, True),
        ({"@timestamp": LATER, "phase": "Pending"}, False),
    ],
)
def test_a_pod_has_left_if_it_was_seen_placed_ended_deleted_or_replaced_since(
    observed: dict[str, Any] | None, left: bool
) -> None:
    assert has_left(ATTEMPT, observed) is left


def a_pod(name: str, first: str = AT, **fields: Any) -> PodWaiting:
    plain: dict[str, Any] = {"namespace": "llm", "name": name, "pod_uid": "", "scheduler": "s", "status": "failed"}
    plain["reasons"] = []
    plain |= {"workload": "", "pod_group": "", "queue": "", "priority_class": "", "created_at": None}
    plain |= {"first_judged_at": first, "last_judged_at": LATER, "attempt": "", "schedulerlog": ""}
    return PodWaiting.model_validate(plain | fields)


def test_five_hundred_pods_of_one_job_are_one_line() -> None:
    pods = [a_pod(f"p{number}", workload="Job/train", reasons=["NumaNotFit"]) for number in range(500)]
    answer = pending(WaitingPods([a_pod("alone", BEFORE), *pods], is_complete=True), [], limit=10)
    assert [(item.workload, item.pods) for item in answer.items] == [("Job/train", 500), ("Pod/alone", 1)]
    assert answer.items[0].reasons == {"NumaNotFit": 500}
    assert [pod.name for pod in answer.items[0].examples] == ["p0", "p1", "p2"]


def test_workloads_of_one_name_in_two_namespaces_are_two() -> None:
    pods = [a_pod("a", workload="Job/train"), a_pod("a", workload="Job/train", namespace="other")]
    answer = pending(WaitingPods(pods, is_complete=False), [], limit=1)
    assert (answer.total, len(answer.items), answer.pods, answer.complete) == (2, 1, 2, False)
