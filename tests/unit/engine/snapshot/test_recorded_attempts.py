"""Clusters on which kube-scheduler has judged pods: what it counted on their nodes, and what it read of all objects."""

from tests.conformance.__main__ import KUBE
from tests.conformance.shares import choose_every, list_wrong


def test_a_share_of_the_snapshots_holds_what_kube_scheduler_counted_and_judged() -> None:
    assert list_wrong(KUBE, choose_every(8), "kube filter") == []
