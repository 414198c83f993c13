"""A password in an address appears in no output, whichever command is called and whatever is wrong (M9)."""

from collections.abc import Sequence

import pytest
from typer.testing import CliRunner

import api.__main__
import ingest.__main__
import pipeline.__main__
import scheduler.__main__
from pipeline.admin import provision

SECRET = "S3cret"  # noqa: S105 - of the addresses below
WRONG_URLS = ("admin:S3cret@opensearch:9200", "htp://admin:S3cret@opensearch", "http://admin:S3cret@opensearch:port")
WRONG_BROKERS = ("admin:S3cret@kafka:9092:1", "kafka://admin:S3cret@kafka")
DOWN = {
    "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
    "SCHEDULERLOG_OPENSEARCH_URL": "http://admin:S3cret@127.0.0.1:9",
}
WITH_OPENSEARCH = [
    (pipeline.__main__.app, "provision"),
    (pipeline.__main__.app, "retention"),
    (pipeline.__main__.app, "index"),
    (pipeline.__main__.app, "placements"),
    (api.__main__.app, "serve"),
]
WITH_KAFKA = [
    *WITH_OPENSEARCH,
    (pipeline.__main__.app, "worker"),
    (pipeline.__main__.app, "dead-letters list"),
    (pipeline.__main__.app, "dead-letters show 1"),
    (pipeline.__main__.app, "dead-letters replay --all"),
    (pipeline.__main__.app, "events"),
    (pipeline.__main__.app, "alerts"),
    (pipeline.__main__.app, "alertmanager --url http://127.0.0.1:9"),
    (ingest.__main__.app, "hami-log x"),
    (ingest.__main__.app, "kai-log x"),
    (ingest.__main__.app, "kube-events"),
    (ingest.__main__.app, "raw-logs"),
    (ingest.__main__.app, "sniffer x"),
    (scheduler.__main__.app, "serve --cluster x --insecure-http"),
]


def list_ids(parameters: Sequence[tuple[object, str]]) -> list[str]:
    return [command for _, command in parameters]


def read_output(app: object, command: str, **environment: str) -> str:
    result = CliRunner().invoke(app, command.split(), env=DOWN | environment)  # type: ignore[arg-type]
    assert result.exit_code in (1, 2), result.output
    assert result.output
    return result.output


@pytest.mark.parametrize("url", WRONG_URLS)
@pytest.mark.parametrize(("app", "command"), WITH_OPENSEARCH, ids=list_ids(WITH_OPENSEARCH))
def test_a_wrong_url_is_refused_without_its_password(app: object, command: str, url: str) -> None:
    assert SECRET not in read_output(app, command, SCHEDULERLOG_OPENSEARCH_URL=url)


@pytest.mark.parametrize("servers", WRONG_BROKERS)
@pytest.mark.parametrize(("app", "command"), WITH_KAFKA, ids=list_ids(WITH_KAFKA))
def test_a_wrong_broker_is_refused_without_its_password(app: object, command: str, servers: str) -> None:
    assert SECRET not in read_output(app, command, SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS=servers)


def test_a_wrong_url_of_alertmanager_is_refused_without_its_password() -> None:
    command = "alertmanager --url admin:S3cret@alertmanager:9093"
    assert SECRET not in read_output(pipeline.__main__.app, command)


def test_an_index_that_is_down_is_named_without_its_password() -> None:
    text = read_output(pipeline.__main__.app, "retention")
    assert text.startswith("OpenSearch at http://127.0.0.1:9: ")
    assert SECRET not in text


def test_provisioning_names_an_index_that_is_down_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async def provision_nothing(*_: object) -> None:
        """Provision nothing: Kafka has everything."""

    monkeypatch.setattr(provision, "provision_topics", provision_nothing)
    text = read_output(pipeline.__main__.app, "provision --wait 0")
    assert text.splitlines()[-1].startswith("OpenSearch at http://127.0.0.1:9: ")
    assert SECRET not in text
