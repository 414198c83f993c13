"""The choice of a Deployment's pod to read: the leader, else the newest that runs; it is kept while it runs."""

from typing import Any

import pytest

from ingest.sources.pod_choice import choose_pod

LEADS = {"hami.io/scheduler-role": "leader"}


def a_pod(name: str, created: str, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": created} | metadata,
        "status": {"phase": phase},
    }


OLD, NEW = a_pod("hami-scheduler-a", "2026-11-22T01:00:00Z"), a_pod("hami-scheduler-b", "2026-11-22T02:00:00Z")
NEW_NAME = "hami-scheduler-b"
STRANGER = a_pod("hami-device-plugin-x", "2026-11-22T03:00:00Z")
DELETED = {"deletionTimestamp": "2026-11-22T04:00:00Z"}


@pytest.mark.parametrize(
    ("pods", "current", "name"),
    [
        ([OLD, NEW, STRANGER], "", "hami-scheduler-b"),
        ([OLD, NEW], "hami-scheduler-a", "hami-scheduler-a"),
        ([a_pod("hami-scheduler-a", "2026-11-22T01:00:00Z", labels=LEADS), NEW], NEW_NAME, "hami-scheduler-a"),
        ([a_pod("hami-scheduler-a", "2026-11-22T01:00:00Z", **DELETED), NEW], "hami-scheduler-a", "hami-scheduler-b"),
        ([OLD, a_pod("hami-scheduler-b", "2026-11-22T02:00:00Z", "Pending")], "", "hami-scheduler-a"),
        ([NEW], "hami-scheduler-a", "hami-scheduler-b"),
        ([STRANGER], "", ""),
        ([], "hami-scheduler-a", ""),
    ],
    ids=[
        "the newest", "the present one stays", "the leader", "not one that is being deleted", "one that runs",
        "another when the present one is gone", "none of that name", "none at all",
    ],
)  # fmt: skip
def test_the_pod_that_is_read(pods: list[dict[str, Any]], current: str, name: str) -> None:
    assert choose_pod(pods, "hami-scheduler-", current) == name
