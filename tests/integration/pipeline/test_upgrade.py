"""Indices and templates of older and newer versions: what ``provision`` makes of them, and what an index writer
reports.

``cases/templates_of_version_N.json`` are the templates that ``provision`` of that version wrote. A change
that raises the version adds those of the previous one.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.diagnosis.waiting import derive_wait
from engine.summaries.fold import summarize
from schemas.codec.records import encode_value
from schemas.documents.attempts import read_summary
from schemas.events import AttemptSummarized
from schemas.index_family import MAPPING_VERSION
from schemas.indices import ATTEMPTS, INDICES
from tests.support.builders.attempts import an_attempt, build_common
from tests.support.harness.pipeline_process import Pipeline
from tests.support.stress import IS_STRESS
from tests.support.waiting import until

CASES = Path(__file__).parent / "cases"
OLDER = range(1, MAPPING_VERSION)
BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
DEVICES = {"node1": [["CardInsufficientMemory"] * 2], "node2": [["NumaNotFit"] * 2]}


def make_old(url: str, version: int, day: str) -> None:
    """Make what ``provision`` and an index writer of that version left: templates, an index of the day, a document."""
    templates = json.loads((CASES / f"templates_of_version_{version}.json").read_text())
    with httpx.Client(base_url=url, timeout=30) as client:
        for index in INDICES:
            client.delete(f"/_index_template/{index.alias}")
        for alias, template in templates.items():
            client.put(f"/_index_template/{alias}", json=template).raise_for_status()
        old = {"@timestamp": f"{BEGAN:%Y-%m-%dT%H:%M:%SZ}", "attempt_id": f"old-{version}", "namespace": "old"}
        client.put(f"/{day}/_doc/old-{version}", json=old, params={"refresh": "true"}).raise_for_status()


def read_version(url: str, index: str) -> int:
    (mapping,) = httpx.get(f"{url}/{index}/_mapping", timeout=30).json().values()
    version: int = mapping["mappings"]["_meta"]["schedulerlog_mapping_version"]
    return version


def has_logged_and_ended(running: Pipeline, line: str) -> bool:
    log = running.processes.log("index")
    until(lambda: running.processes.is_running("index"), lambda runs: not runs)
    ended = running.processes.release_if_ended("index")
    return ended and line in log.read_text()


def test_the_templates_of_every_older_version_are_kept() -> None:
    assert {path.name for path in CASES.glob("templates_of_version_*")} == {
        f"templates_of_version_{version}.json" for version in OLDER
    }


@pytest.mark.stress
@pytest.mark.parametrize("version", OLDER if IS_STRESS else (OLDER[0], OLDER[-1]))
def test_an_index_of_an_older_version_is_upgraded_and_written_again(running: Pipeline, version: int) -> None:
    url, began = running.servers.opensearch_url, BEGAN + timedelta(days=version)
    day = ATTEMPTS.name(began)
    running.processes.stop("index")
    make_old(url, version, day)
    running.start_index()
    assert has_logged_and_ended(
        running, f"has mapping version {version}, not {MAPPING_VERSION}: run `schedulerlog pipeline provision`"
    )
    running.processes.run("provision", "pipeline", "provision")
    output = running.processes.log("provision").read_text()
    assert f"index {day}: mapping version was {version}, is now {MAPPING_VERSION}" in output
    assert read_version(url, day) == MAPPING_VERSION
    running.start_index()
    events = an_attempt(DEVICES, **build_common("upgraded", f"upgraded-{version}") | {"started_at": began})
    running.send(events)
    (document,) = until(lambda: running.get_attempts(f"upgraded-{version}"), bool).values()
    summary = read_summary(document)
    assert isinstance(summary, AttemptSummarized)
    # The first attempt of a pod begins an episode.
    began_at = events[0].started_at
    episode_fields = {
        "episode": events[0].attempt_id,
        "episode_started_at": began_at,
        "first_judged_at": began_at,
        "attempts": 1,
    }
    expected = summarize(events)
    assert encode_value(summary) == encode_value(
        expected.model_copy(update={**episode_fields, "wait": derive_wait(expected)})
    )
    assert f"old-{version}" in running.get_attempts("old")


@pytest.mark.parametrize(("location", "day_of_its_own"), [("template", 20), ("index", 21)])
def test_an_index_writer_that_finds_a_newer_version_ends_with_a_message(
    running: Pipeline, location: str, day_of_its_own: int
) -> None:
    url, newer = running.servers.opensearch_url, MAPPING_VERSION + 1
    began = BEGAN + timedelta(days=day_of_its_own)
    day = ATTEMPTS.name(began)
    mapping: dict[str, Any] = {"_meta": {"schedulerlog_mapping_version": newer}}
    if location == "template":
        body = ATTEMPTS.build_template() | mapping
        httpx.put(f"{url}/_index_template/{ATTEMPTS.alias}", json=body, timeout=30).raise_for_status()
        running.processes.stop("index")
        running.start_index()
    else:
        httpx.put(f"{url}/{day}", timeout=30).raise_for_status()
        httpx.put(f"{url}/{day}/_mapping", json=mapping, timeout=30).raise_for_status()
        running.send(an_attempt(DEVICES, **build_common("early", "newer") | {"started_at": began}))
    assert has_logged_and_ended(running, f"has mapping version {newer}, newer than {MAPPING_VERSION} of this process")
    running.processes.run("provision", "pipeline", "provision")
    running.start_index()
    running.send(an_attempt(DEVICES, **build_common("late", "newer") | {"started_at": began}))
    wanted = {"early", "late"} if location == "index" else {"late"}
    pods = until(
        lambda: {attempt["pod"] for attempt in running.get_attempts("newer").values()},
        lambda pods: pods >= wanted,
        30,
    )
    assert pods >= wanted


def read_settings(client: httpx.Client, index: str) -> dict[str, str]:
    """Read the settings of a new index of that name, which is deleted again."""
    client.put(f"/{index}").raise_for_status()
    (answer,) = client.get(f"/{index}/_settings").json().values()
    client.delete(f"/{index}").raise_for_status()
    settings: dict[str, str] = answer["settings"]["index"]
    return settings


def test_settings_of_an_operator_come_before_ours_and_are_never_overwritten(running: Pipeline) -> None:
    custom = {
        "schedulerlog@custom": {"refresh_interval": "7s", "number_of_shards": "2"},
        "schedulerlog-findings@custom": {"number_of_shards": "3"},
    }
    with httpx.Client(base_url=running.servers.opensearch_url, timeout=30) as client:
        templates = client.get("/_component_template/schedulerlog@custom").json()["component_templates"]
        assert [item["component_template"]["template"] for item in templates] == [{}]
        try:
            for name, index in custom.items():
                body = {"template": {"settings": {"index": index}}}
                client.put(f"/_component_template/{name}", json=body).raise_for_status()
            running.processes.run("provision", "pipeline", "provision", "--index-shards", "1")
            stored_templates = client.get("/_component_template/schedulerlog*@custom").json()["component_templates"]
            stored_settings = {
                item["name"]: item["component_template"]["template"]["settings"]["index"] for item in stored_templates
            }
            attempts = read_settings(client, "schedulerlog-attempts-2001.01.01")
            findings = read_settings(client, "schedulerlog-findings-2001.01.01")
        finally:
            for name in custom:
                client.put(f"/_component_template/{name}", json={"template": {}}).raise_for_status()
    assert stored_settings == custom
    assert (attempts["refresh_interval"], attempts["number_of_shards"]) == ("7s", "2")
    assert (findings["refresh_interval"], findings["number_of_shards"]) == ("7s", "3")
    # What the operator leaves open is ours.
    assert attempts["codec"] == findings["codec"] == "best_compression"


def test_an_attempt_is_found_by_the_names_that_open_telemetry_gives_logs(running: Pipeline) -> None:
    pod = build_common("named", "otel")
    running.send(an_attempt({"node1": [["picked", "fits"]]}, chosen="node1", **pod))
    assert until(lambda: running.get_attempts("otel"))
    names = {
        "k8s.cluster.name": "default", "k8s.namespace.name": "otel", "k8s.pod.name": "named",
        "k8s.pod.uid": pod["pod"].uid, "k8s.node.name": "node1",
    }  # fmt: skip
    for name, value in names.items():
        documents = running.get_documents(
            {"bool": {"filter": [{"term": {name: value}}, {"term": {"namespace": "otel"}}]}}
        )
        assert len(documents) == 1, name
    assert running.get_documents({"term": {"k8s.pod.name": "another"}}) == {}
