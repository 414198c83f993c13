"""Host ports: which two pods cannot run on one node (kube-scheduler's NodePorts)."""

import pytest

from engine.snapshot.pods import ANY_ADDRESS, HostPortBinding, has_ended


@pytest.mark.parametrize(
    ("other", "is_conflicting"),
    [
        (("10.0.0.1", "TCP", 80), True),
        ((ANY_ADDRESS, "TCP", 80), True),
        (("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "UDP", 80), False),
        (("10.0.0.1", "TCP", 81), False),
        ((ANY_ADDRESS, "UDP", 80), False),
    ],
)
def test_ports_conflict_by_protocol_number_and_address(other: tuple[str, str, int], is_conflicting: bool) -> None:
    port, second = HostPortBinding("10.0.0.1", "TCP", 80), HostPortBinding(*other)
    assert port.is_conflicting(second) is is_conflicting
    assert second.is_conflicting(port) is is_conflicting


@pytest.mark.parametrize(
    ("status", "is_ended"),
    [
        ({"phase": "Succeeded"}, True),
        ({"phase": "Failed"}, True),
        ({"phase": "Running"}, False),
        ({"phase": "Pending"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_pods_that_succeeded_or_failed_have_ended(status: dict[str, str] | None, is_ended: bool) -> None:
    assert has_ended({"status": status}) is is_ended
