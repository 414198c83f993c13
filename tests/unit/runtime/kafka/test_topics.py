"""Comparison of topics while provisioning, and the report of a missing topic."""

import pytest

from runtime.errors import NotProvisionedError
from runtime.kafka.topics import build_configuration, describe_missing_topics, list_differences, require
from schemas.topics import ATTEMPTS


def test_missing_topics_are_named_in_the_order_they_were_asked_for() -> None:
    line = describe_missing_topics(["b", "a", "c"], {"c"})
    assert line.startswith("Kafka has no topic b, a: run `schedulerlog pipeline provision`")
    assert describe_missing_topics(["c"], {"c", "d"}) == ""


def test_a_topic_that_is_required_and_missing_is_an_error() -> None:
    with pytest.raises(NotProvisionedError, match="no topic a: run"):
        require(["a"], [])
    require(["a"], ["a"])


def test_a_topics_configuration_is_the_contracts() -> None:
    assert build_configuration(ATTEMPTS)["retention.ms"] == str(int(ATTEMPTS.retention.total_seconds()) * 1000)


def test_only_what_differs_is_reported() -> None:
    wanted = {"retention.ms": "1", "cleanup.policy": "delete", "max.message.bytes": "5"}
    actual = {"retention.ms": "2", "cleanup.policy": "delete", "other": "x"}
    assert list_differences(wanted, actual) == [("retention.ms", "2", "1"), ("max.message.bytes", "not set", "5")]
