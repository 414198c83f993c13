"""Pods that HAMi's own webhook has admitted, and its patches and refusals."""

from tests.conformance.__main__ import COMMITTED, SECOND, THIRD
from tests.conformance.shares import list_wrong


def test_every_pod_is_admitted_as_hami_admits_it() -> None:
    assert list_wrong(COMMITTED, iter, "webhook") == []


def test_every_pod_of_other_vendors_is_admitted_as_hami_admits_it() -> None:
    assert list_wrong(SECOND, iter, "vendor webhook") == []
    assert list_wrong(THIRD, iter, "vendor webhook") == []
