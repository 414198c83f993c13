"""Waiting pods by workload and by obstacle."""

from cli.direct.waiting_groups import group_by_obstacle, group_by_workload
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.waiting import MainObstacle, PodsWaiting, PodWaiting


def a_waiting_pod(name: str, code: str, workload: str = "", minute: int = 0) -> PodWaiting:
    time = f"2026-01-01T10:{minute:02}:00.000000Z"
    return PodWaiting(
        namespace="ml", name=name, pod_uid="", scheduler="s", status="failed", reasons=[code], workload=workload,
        pod_group="", queue="", priority_class="", created_at=time, first_judged_at=time, last_judged_at=time,
        attempt="", schedulerlog="", devices=2, gpu_hours=0.5,
        obstacle=MainObstacle(code=code, sentence=InBothLanguages(en=code, zh=code)),
    )  # fmt: skip


WAITING = PodsWaiting(
    total=3,
    items=[
        a_waiting_pod("a", "TaintNotTolerated", "Job/train", 1),
        a_waiting_pod("b", "InsufficientResource", "Job/train", 2),
        a_waiting_pod("c", "InsufficientResource", minute=3),
    ],
)


def test_the_pods_of_a_workload_are_one_row() -> None:
    answer = group_by_workload(WAITING)
    assert (answer.pods, answer.total) == (3, 2)
    assert [(item.workload, item.pods, item.devices) for item in answer.items] == [("Job/train", 2, 4), ("Pod/c", 1, 2)]
    assert answer.items[0].reasons == {"TaintNotTolerated": 1, "InsufficientResource": 1}
    assert answer.reasons == {"InsufficientResource": 2, "TaintNotTolerated": 1}


def test_obstacles_are_sorted_by_their_pods() -> None:
    answer = group_by_obstacle(WAITING)
    rows = [(item.obstacle.code if item.obstacle else "", item.pods, item.workloads) for item in answer.items]
    assert rows == [("InsufficientResource", 2, 2), ("TaintNotTolerated", 1, 1)]
    assert answer.items[0].first_judged_at == "2026-01-01T10:02:00.000000Z"
