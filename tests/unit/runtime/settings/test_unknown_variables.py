"""A variable that nobody reads is named at the start, and never with its value."""

import pytest

from runtime.settings.variables import warn_of_unknown


def test_known_variables_bring_no_warning() -> None:
    assert not warn_of_unknown(
        {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "a:1", "PATH": "/bin", "SCHEDULERLOG_TEST_STRESS": "1"}
    )


def test_one_line_names_all_with_the_nearest_known_one() -> None:
    environment = {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVER": "u:S3cret@a", "SCHEDULERLOG_QUEUE_BYTES": "1"}
    assert warn_of_unknown(environment) == (
        "without effect: SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVER (do you mean SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS?), "
        "SCHEDULERLOG_QUEUE_BYTES (do you mean SCHEDULERLOG_QUEUE_SIZE?)"
    )


def test_what_resembles_nothing_is_named_alone() -> None:
    assert (
        warn_of_unknown({"SCHEDULERLOG_XYZZY_QWERTZ_1234567890": ""})
        == "without effect: SCHEDULERLOG_XYZZY_QWERTZ_1234567890"
    )


@pytest.mark.parametrize("name", ["SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT", "PORT_9090_TCP_ADDR"])
def test_what_kubernetes_makes_up_for_services_is_no_mistake(name: str) -> None:
    assert not warn_of_unknown({f"SCHEDULERLOG_API_{name}": "tcp://10.0.0.11:9090"})
