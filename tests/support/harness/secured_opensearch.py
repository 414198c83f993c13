"""Connections of processes to an OpenSearch that asks who they are, and the uses of each role, by the code they run."""

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import httpx
from prometheus_client import CollectorRegistry
from pydantic import BaseModel

from api.index.reading.client import IndexTimeoutError, OpenSearch
from cli.doctor.opensearch import check
from dev.embedded.secured_opensearch import SecuredOpenSearch
from pipeline.admin.provision import provision_templates
from pipeline.admin.retention import drop_expired
from pipeline.metrics import IndexMetrics
from pipeline.settings import RetentionSettings, TemplateSettings
from pipeline.sinks.bulk import Document, WriteResult, encode_source
from pipeline.sinks.index_watch import IndexWatch
from pipeline.sinks.msearch import search_page
from pipeline.sinks.opensearch import OpenSearchSink
from runtime.opensearch.client import create_client
from runtime.opensearch.roles import PROVISIONER, WRITER
from runtime.settings.opensearch_connection import OpenSearchConnection
from schemas.indices import ATTEMPTS, FINDINGS, POD_STATES, TRENDS
from tests.support.waiting import PATIENCE_SECONDS

Settings = TypeVar("Settings", bound=BaseModel)

PASSWORD: Final = "correct-Horse-7-battery"  # noqa: S105 - of servers that end with the test
NOW: Final = datetime.now(UTC)
DAY: Final = ATTEMPTS.name(NOW)
_LONG_AGO: Final = encode_source({"@timestamp": "2020-01-01T00:00:00Z"})


def build_connection(node: SecuredOpenSearch, **fields: object) -> OpenSearchConnection:
    common = {"opensearch_url": node.url, "opensearch_ca_file": node.ca_file}
    return OpenSearchConnection.model_validate(common | fields)


def connect_by_certificate(node: SecuredOpenSearch, user: str, **fields: object) -> OpenSearchConnection:
    certificate = node.ca_file.with_name(f"{user}.crt")
    files = {"opensearch_cert_file": certificate, "opensearch_key_file": certificate.with_suffix(".key")}
    return build_connection(node, **files | fields)


def connect_by_password(
    node: SecuredOpenSearch, user: str, password: str = PASSWORD, **fields: object
) -> OpenSearchConnection:
    return build_connection(node, opensearch_username=user, opensearch_password=password, **fields)


def write_environment(connection: OpenSearchConnection) -> dict[str, str]:
    """Write the variables of a process; the password is in a file, as a Secret is mounted."""
    values = {name: getattr(connection, name) for name in connection.model_fields_set}
    if password := values.pop("opensearch_password", None):
        assert connection.opensearch_ca_file
        values["opensearch_password_file"] = file = connection.opensearch_ca_file.with_name("password")
        file.write_text(password.get_secret_value())
    return {f"SCHEDULERLOG_{name.upper()}": str(value) for name, value in values.items()}


def build_settings(model: type[Settings], connection: OpenSearchConnection, **fields: object) -> Settings:
    reach = {name: getattr(connection, name) for name in OpenSearchConnection.model_fields}
    return model.model_validate(reach | fields)


async def make_templates(node: SecuredOpenSearch, connection: OpenSearchConnection | None = None) -> list[str]:
    lines: list[str] = []
    reach = connection or connect_by_certificate(node, PROVISIONER)
    await provision_templates(build_settings(TemplateSettings, reach), timedelta(0), lines.append)
    return lines


async def write(node: SecuredOpenSearch, connection: OpenSearchConnection | None = None) -> None:
    """Write, delete, read back and search, as ``index`` and ``placements`` do. Waits for missing rights."""
    client = create_client(connection or connect_by_certificate(node, WRITER))
    sink = OpenSearchSink(client, IndexMetrics("test", CollectorRegistry()), max_backoff_seconds=0.1)
    attempt = Document(DAY, "attempt", _LONG_AGO, 1)
    lost: list[str] = []
    watch = IndexWatch(client, lost.extend)
    states = [Document(POD_STATES.name(NOW), uuid.uuid4().hex, _LONG_AGO, 1) for _ in range(2)]
    try:
        await sink.check()
        assert await sink.write([attempt, *states]) == WriteResult()
        assert await sink.write([Document(states[0].index, states[0].id, b"", 2, is_deletion=True)]) == WriteResult()
        assert [document is not None for document in await sink.read_stored([attempt, *states])] == [True, False, True]
        ((hit,),) = await sink.search(
            [search_page(ATTEMPTS, [{"ids": {"values": ["attempt"]}}], ("attempt_id",), 2, None)]
        )
        assert hit["_id"] == "attempt"
        # Of a family that has no index elsewhere here.
        finding = Document(FINDINGS.name(NOW), "finding", _LONG_AGO, 1)
        assert await sink.write([finding]) == WriteResult()
        await watch.check()
        node.administrator.delete(f"/{finding.index}")
        await watch.check()
        assert lost == [finding.index]
    finally:
        await sink.close()


async def read(connection: OpenSearchConnection) -> None:
    """Search and get, as ``api`` does."""
    client = create_client(connection)
    index = OpenSearch(client, lambda *_: None, 10)
    everything: dict[str, Any] = {"query": {"match_all": {}}}
    try:
        await _ping(index)
        assert (await index.search(ATTEMPTS.alias, everything))["hits"]["total"]["value"] >= 1
        # There is no such index: the family has no documents yet.
        assert (await index.search(FINDINGS.alias, everything))["hits"]["hits"] == []
        assert await index.read_documents([{"_index": DAY, "_id": "attempt"}]) != [None]
    finally:
        await client.close()


async def _ping(index: OpenSearch) -> None:
    """Ping until it is answered within the two seconds of a ping, which a busy machine may exceed."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with suppress(IndexTimeoutError):
                return await index.ping()


async def provide(node: SecuredOpenSearch, connection: OpenSearchConnection) -> None:
    """Bring an old index to the mapping of today, sum up old counts, delete what is old a year later, and ask what
    ``doctor`` asks."""
    _make_an_old_index(node)
    lines = await make_templates(node, connection)
    assert any(line.startswith(f"index {TRENDS.name(NOW)}: mapping version was 1") for line in lines)
    _count_minutes(node)
    client = create_client(connection)
    settings, months = build_settings(RetentionSettings, connection), list[str]()
    dropped: list[str] = []
    try:
        # Before the attempts of today expire, the index of a month is made, three days ahead of it.
        before_march = datetime(NOW.year + 2, 2, 26, tzinfo=UTC)
        of_years = build_settings(RetentionSettings, connection, retention=timedelta(days=2000))
        await drop_expired(client, of_years, before_march, dry_run=False, say=lambda item: months.append(str(item)))
        later = NOW + timedelta(days=400)
        await drop_expired(client, settings, later, dry_run=False, say=lambda item: dropped.append(str(item)))
    finally:
        await client.close()
    assert ATTEMPTS.derive_month(ATTEMPTS.name(before_march + timedelta(days=5)))[0] in {
        line.split()[1].rstrip(":") for line in months
    }
    summed = [line for line in months if TRENDS.alias in line]
    assert summed == ["index schedulerlog-trends: minutes of a week ago summed up into 1 rows of hours"]
    assert {DAY, TRENDS.name(NOW)} <= {line.split()[1].rstrip(":") for line in dropped}
    # By the first run, or by the second where it was not searchable yet; other tests may leave states too.
    assert POD_STATES.alias in {line.split()[1].rstrip(":") for line in [*months, *dropped]}
    assert await check(connection) == ([], [])
    stats = node.administrator.get("/_nodes/stats/indices/search").json()["nodes"].values()
    assert sum(stat["indices"]["search"]["scroll_current"] for stat in stats) == 0


def _make_an_old_index(node: SecuredOpenSearch) -> None:
    mappings = {"_meta": {"schedulerlog_mapping_version": 1}}
    template = {"index_patterns": [f"{TRENDS.alias}-*"], "template": {"mappings": mappings}}
    answers = [
        node.administrator.put(f"/_index_template/{TRENDS.alias}", json=template),
        node.administrator.put(f"/{TRENDS.name(NOW)}"),
        # What was just written is searched for.
        node.administrator.post("/schedulerlog-*/_refresh"),
    ]
    assert_all_succeeded(answers)


def _count_minutes(node: SecuredOpenSearch) -> None:
    """Write the counts of a minute of a month ago, and of one of today."""
    row = {"cluster": "default", "partition": 0, "namespace": "ml", "result": "failed", "dimension": "all", "value": ""}
    answers = []
    for moment in (NOW - timedelta(days=30), NOW):
        times = {"@timestamp": moment.isoformat(), "recorded_at": moment.isoformat()}
        path = f"/{TRENDS.name(NOW - timedelta(days=40))}/_doc/{moment:%Y%m%d}"
        answers.append(node.administrator.put(path, json=row | times, params={"refresh": "true"}))
    assert_all_succeeded(answers)


def assert_all_succeeded(answers: Sequence[httpx.Response]) -> None:
    assert [answer.text for answer in answers if not answer.is_success] == []
