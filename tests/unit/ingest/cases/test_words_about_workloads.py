"""Words of Kueue without the Workload that they are about."""

from textwrap import indent

import pytest

from engine.cases.unmade_causes import list_unmade
from ingest.cases.read_case import read_case_text
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.diagnosis import Obstacle

SHORT = "couldn't assign flavors to pod set w: insufficient unused quota for nvidia.com/gpu in flavor a4, 3 more needed"
UNCOVERED = "couldn't assign flavors to pod set w: resource memory unavailable in ClusterQueue"
ADMITTED = "Admitted by ClusterQueue labs, wait time since reservation was 0s"
CONDITION = f"""\
conditions:
- lastTransitionTime: "2026-05-02T03:04:05Z"
  message: "{SHORT}"
  reason: Pending
  status: "False"
  type: QuotaReserved
"""
TABLE = f"""\
LAST SEEN  TYPE     REASON            OBJECT             MESSAGE
8s         Warning  SecondPassFailed  workload/job-t-1a  {SHORT}
9s         Normal   QuotaReserved     workload/job-t-1a  Quota reserved in ClusterQueue labs
"""


def list_obstacles(text: str) -> dict[str, Obstacle]:
    case = read_case_text(text)
    obstacles = {}
    for key in list_unmade(case.objects):
        for group in diagnose_workload(case, key).groups:
            assert group.obstacle
            obstacles[str(key)] = group.obstacle
    return obstacles


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        (f"Warning  Pending  9s (x3 over 9m)  kueue-admission  {SHORT}", "workload", "KueueWaitsForQuota"),
        (f"Warning  Pending  4m  kueue-admission  {UNCOVERED}", "workload", "KueueResourceUncovered"),
        (f"Kueue only says: {SHORT}", "workload", "KueueWaitsForQuota"),
        (f"It reads\n```\n{CONDITION}```\n", "workload", "KueueWaitsForQuota"),
        (f"It reads\n```\n{indent(CONDITION, '    ')}```\n", "workload", "KueueWaitsForQuota"),
        (TABLE, "job-t-1a", "KueueWaitsForQuota"),
    ],
)
def test_words_about_a_workload_are_its_obstacle(text: str, name: str, code: str) -> None:
    obstacles = list_obstacles(text)
    assert {key: obstacle.code for key, obstacle in obstacles.items()} == {f"Workload/{name}": code}
    assert "(queue" not in obstacles[f"Workload/{name}"].sentence.en
    assert "（队列" not in obstacles[f"Workload/{name}"].sentence.zh


def test_a_workload_that_was_admitted_later_waits_no_more() -> None:
    rows = f"9s  Warning  Pending  workload/job-t-1a  {SHORT}\n8s  Normal  Admitted  workload/job-t-1a  {ADMITTED}\n"
    assert list_obstacles(f"LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\n{rows}") == {}
