"""Attempts at pods without claims that kube-scheduler has judged: amounts, verdicts per node, messages."""

from tests.conformance.__main__ import KUBE
from tests.conformance.shares import list_wrong


def test_every_attempt_is_judged_as_kube_scheduler_judges() -> None:
    assert list_wrong(KUBE, iter, "kube filter", "kube filter, gated") == []
