import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from api.settings import Settings as ApiSettings
from cli.single_process.parts import NAMES, Choice, build_parts
from cli.single_process.settings import SingleProcessSettings
from ingest.reading.options import WatchSettings
from pipeline.settings import (
    AlertsSettings,
    EventsSettings,
    IndexSettings,
    NotifySettings,
    PlacementsSettings,
    ProvisionSettings,
    RetentionSettings,
    WorkerSettings,
)
from runtime.settings.settings import EnvironmentSettings, read
from runtime.telemetry.spans import NO_TRACING

MODELS = (
    ApiSettings, WorkerSettings, IndexSettings, PlacementsSettings, AlertsSettings, EventsSettings, RetentionSettings,
    ProvisionSettings, WatchSettings, NotifySettings,
)  # fmt: skip
DIFFERENT = {(WatchSettings, "kafka_bootstrap_servers"), (ApiSettings, "opensearch_timeout")}
"""A reader can do without Kafka, this process cannot; the API's time limit is the next test."""


@pytest.fixture
def settings() -> SingleProcessSettings:
    return read(
        SingleProcessSettings,
        kafka_bootstrap_servers="127.0.0.1:9092",
        opensearch_url="http://127.0.0.1:9200",
        cluster_name="c",
    )


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def list_names(settings: SingleProcessSettings, listening: socket.socket | None, **choice: Any) -> list[str]:
    return [part.name for part in build_parts(settings, Choice((), listening, NO_TRACING, **choice))]


@pytest.mark.parametrize("model", MODELS)
def test_a_setting_means_in_one_process_what_it_means_in_its_own(model: type[EnvironmentSettings]) -> None:
    for name, field in model.model_fields.items():
        merged = SingleProcessSettings.model_fields[name]
        if (model, name) not in DIFFERENT:
            assert (merged.annotation, merged.default) == (field.annotation, field.default), name


def test_the_api_has_its_own_time_limit_unless_one_is_set(settings: SingleProcessSettings) -> None:
    assert (settings.opensearch_timeout, settings.to_api_settings().opensearch_timeout) == (
        timedelta(seconds=30),
        timedelta(seconds=10),
    )
    chosen = settings.model_validate(settings.model_dump() | {"opensearch_timeout": "20s"})
    assert chosen.to_api_settings().opensearch_timeout == timedelta(seconds=20)


def test_every_part_of_the_list_runs_where_its_options_are(
    settings: SingleProcessSettings, listening: socket.socket
) -> None:
    logs = {"hami_log": "kube-system/hami-scheduler-*", "kai_log": "kai/scheduler"}
    names = list_names(settings, listening, **logs, has_targets_file=True)
    assert sorted(names) == sorted(NAMES)


def test_without_a_cluster_nothing_asks_its_api_server(
    settings: SingleProcessSettings, listening: socket.socket
) -> None:
    names = list_names(settings, listening, has_cluster=False)
    assert set(NAMES) - set(names) == {"kube-events", "events", "hami-log", "kai-log", "notify"}


def test_excluded_parts_and_an_api_that_is_switched_off_do_not_run(settings: SingleProcessSettings) -> None:
    names = list_names(settings, None, excluded={"alerts"})
    assert "alerts" not in names
    assert "api" not in names


def test_readers_end_before_the_worker_and_the_api_after_all_others(
    settings: SingleProcessSettings, listening: socket.socket
) -> None:
    parts = build_parts(settings, Choice((), listening, NO_TRACING))
    ordered = [part.name for part in sorted(parts, key=lambda part: part.stage)]
    assert ordered[:2] == ["kube-events", "worker"]
    assert ordered[-1] == "api"
