"""Expressions about devices that Kubernetes' own CEL compiler has answered, and its answers."""

from tests.conformance.__main__ import KUBE
from tests.conformance.shares import choose_every, list_wrong


def test_every_expression_has_the_outcome_of_kubernetes() -> None:
    assert list_wrong(KUBE, choose_every(1), "CEL") == []
