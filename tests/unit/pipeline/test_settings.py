from datetime import timedelta

import pytest
from typer.testing import CliRunner

from pipeline.__main__ import app
from pipeline.settings import IndexSettings, PlacementsSettings, RetentionSettings, WorkerSettings
from runtime.errors import SettingError
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.settings import describe_field, read


class Settings(RetentionSettings, IndexSettings, PlacementsSettings, WorkerSettings):
    """All of them."""


PLACES = {"kafka_bootstrap_servers": "127.0.0.1:9092", "opensearch_url": "http://127.0.0.1:9200/"}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SCHEDULERLOG_{name.upper()}", raising=False)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS", "a:1,b:2")
    monkeypatch.setenv("SCHEDULERLOG_OPENSEARCH_URL", "https://u:p@search:9200/")
    monkeypatch.setenv("SCHEDULERLOG_INCOMPLETE_AFTER", "5")
    settings = read(Settings, instance_id=None)
    assert (settings.kafka_bootstrap_servers, settings.opensearch_url) == ("a:1,b:2", "https://search:9200")
    assert (settings.opensearch_username, str(settings.opensearch_password)) == ("u", "**********")
    assert settings.incomplete_after == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"kafka_bootstrap_servers": None},
            "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is not set: Addresses of any of",
        ),
        ({"kafka_bootstrap_servers": "nowhere"}, "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS: 'nowhere' is not HOST:PORT"),
        (
            {"opensearch_url": "127.0.0.1:9200"},
            "SCHEDULERLOG_OPENSEARCH_URL: not a URL: write for example http://127.0.0.1:9200",
        ),
        ({"incomplete_after": "soon"}, "SCHEDULERLOG_INCOMPLETE_AFTER: 'soon' is not a duration, write one such as 5m"),
        ({"queue_size": "10 MB"}, "SCHEDULERLOG_QUEUE_SIZE: '10 MB' is not a size, write one such as 64Mi or 4Gi"),
        ({"retention": "7"}, "SCHEDULERLOG_RETENTION: is shorter than a day: write hours"),
        (
            {"retention_by_family": "devices=7"},
            "SCHEDULERLOG_RETENTION_BY_FAMILY: devices is shorter than a day",
        ),
        ({"retention_by_family": "device=72h"}, "SCHEDULERLOG_RETENTION_BY_FAMILY: 'device' is no family of indices: "),
        ({"retention_by_family": "72h"}, "SCHEDULERLOG_RETENTION_BY_FAMILY: '72h' is no pair: write FAMILY=VALUE"),
        ({"retention_sizes": "devices"}, "SCHEDULERLOG_RETENTION_SIZES: 'devices' is no pair: write FAMILY=VALUE"),
        (
            {"retention_sizes": "pod-states=1Gi"},
            "SCHEDULERLOG_RETENTION_SIZES: pod-states is one index",
        ),
        ({"instance_id": "a b"}, "SCHEDULERLOG_INSTANCE_ID: "),
        ({"expected_pools": "a100"}, "SCHEDULERLOG_EXPECTED_POOLS: "),
        (
            {"node_pools": "a100=gpu-*", "expected_pools": "ml=a100,web=a100|t4"},
            "SCHEDULERLOG_EXPECTED_POOLS: 't4' is not a pool of SCHEDULERLOG_NODE_POOLS",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_setting(fields: dict[str, str | None], line: str) -> None:
    with pytest.raises(SettingError) as raised:
        read(Settings, **(PLACES | fields))
    assert str(raised.value).startswith(line)
    assert "\n" not in str(raised.value)


def test_every_setting_is_explained() -> None:
    assert [name for name in Settings.model_fields if not describe_field(Settings, name)] == []


@pytest.mark.parametrize("command", ["provision", "worker"])
def test_without_settings_a_command_ends_with_2_and_one_line(command: str) -> None:
    result = CliRunner().invoke(app, [command])
    assert result.exit_code == 2
    assert result.stderr.startswith("SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is not set")
    assert len(result.stderr.splitlines()) == 1


def test_a_command_that_needs_kafka_alone_asks_for_no_url_of_opensearch() -> None:
    assert read(KafkaConnection, kafka_bootstrap_servers="a:1").kafka_bootstrap_servers == "a:1"
