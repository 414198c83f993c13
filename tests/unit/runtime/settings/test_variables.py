"""No variable that we read has a name that Kubernetes makes up for a Service, whatever the Service is called."""

import re

import pytest

import api.__main__
import ingest.__main__
import pipeline.__main__
import scheduler.__main__
from runtime.settings.settings_table import list_settings

APPLICATIONS = (api.__main__.app, ingest.__main__.app, pipeline.__main__.app, scheduler.__main__.app)
INJECTED = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$")


def list_variables() -> set[str]:
    return {row.variable for app in APPLICATIONS for row in list_settings(app)}


def test_the_variables_of_models_and_of_flags_are_found() -> None:
    variables = {"SCHEDULERLOG_METRICS_ADDRESS", "SCHEDULERLOG_API_LISTEN", "SCHEDULERLOG_SCHEDULER_SPOOL_SYNC"}
    assert variables | {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS"} <= list_variables()


@pytest.mark.parametrize("name", sorted(list_variables()))
def test_no_service_of_any_name_sets_it(name: str) -> None:
    assert name.startswith("SCHEDULERLOG_")
    assert not INJECTED.search(name)


def test_the_names_that_kubernetes_makes_up_are_recognized() -> None:
    service = "SCHEDULERLOG_API"
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR"):
        assert INJECTED.search(f"{service}_{name}")
