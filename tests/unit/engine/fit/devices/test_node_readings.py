"""Causes for which a node whose registration can be read is not registered."""

from engine.fit.devices.node_readings import RegistrationStep, describe_cause


def test_a_node_that_was_dropped_has_no_device_and_another_has_not_answered() -> None:
    sources = "(status.allocatable and annotation hami.io/node-handshake)"
    assert describe_cause(RegistrationStep.DROP) == f"no GPU is allocatable any more {sources}"
    assert describe_cause(RegistrationStep.KEEP) == f"its device plugin has not answered yet {sources}"
