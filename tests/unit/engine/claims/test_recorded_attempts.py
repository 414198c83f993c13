"""Attempts at pods with resource claims that kube-scheduler has judged, and its verdicts and allocations."""

from tests.conformance.__main__ import KUBE
from tests.conformance.shares import choose_every, list_wrong


def test_a_share_of_the_attempts_is_judged_as_kube_scheduler_judges() -> None:
    assert list_wrong(KUBE, choose_every(6), "kube DRA", "kube DRA, gated") == []
