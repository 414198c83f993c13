"""Panels and saved searches of Dashboards for a reader of one namespace, by the role of docs/dashboards.md.

OpenSearch with its security plugin answers the searches that Dashboards makes (tests/support/panel_search.py).
"""

import json
import re
import ssl
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import pytest

from deploy.dashboards.overview import export
from dev.embedded.secured_opensearch import SecuredOpenSearch, secured_opensearch
from engine.summaries.trends import Minute, build_records, derive_contribution, list_weights
from schemas.events import AttemptSummarized, Balance, DeviceAllocation, PodRef
from schemas.index_family import SETTINGS_TEMPLATE, build_settings_template
from schemas.indices import INDICES
from schemas.placements import PodPlacement
from tests.support.harness.index_filling import NOW, Filling, a_finding, an_attempt
from tests.support.harness.secured_opensearch import assert_all_succeeded
from tests.support.panel_search import Imported, query_of, search_body

NAMESPACE: Final = "ml"
READER: Final = "ml-reader"
IMPORTED: Final = Imported.read(export("https://schedulerlog.example"))
SEARCHING: Final = [
    (kind, name)
    for kind in ("visualization", "search")
    for name, saved in IMPORTED.select_type(kind).items()
    if IMPORTED.get_pattern(saved)
]
_PAGE: Final = (Path(__file__).parents[3] / "docs/dashboards.md").read_text()


class SecuredFilling(Filling):
    """Documents that the administrator writes."""

    def __init__(self, node: SecuredOpenSearch) -> None:
        super().__init__("", node.url)
        self._administrator = node.administrator

    def send_bulk(self, lines: bytes, allowed: int = 200) -> None:
        headers = {"content-type": "application/x-ndjson"}
        answer = self._administrator.post("/_bulk?refresh=true", content=lines, headers=headers)
        results = [next(iter(item.values())) for item in answer.raise_for_status().json()["items"]]
        assert all(result["status"] in (200, 201, allowed) for result in results), answer.text[:2000]


def a_refused_attempt(pod: str, started_at: datetime) -> AttemptSummarized:
    attempt = an_attempt(pod, started_at=started_at, nodes=("node1", "node2"), reason="CardInsufficientMemory")
    balance = Balance(judged_nodes=2, judged_devices=16, devices=[{"CardInsufficientMemory": 16}])
    return attempt.model_copy(update={"balance": balance})


def a_placement(namespace: str) -> PodPlacement:
    return PodPlacement(
        id=f"{namespace}/placed", cluster="default", pod=PodRef(namespace=namespace, name="placed", uid=namespace),
        node="node1", started_at=NOW, bound_at=NOW, running_at=NOW + timedelta(minutes=2),
        first_judged_at=NOW - timedelta(minutes=1), scheduler="hami-scheduler", attempt_id="a1" * 16,
        layer_seconds={"nodes": 60, "start": 120},
        allocations=[DeviceAllocation(uuid=f"GPU-{namespace}", container="main", memory_mib=1000)],
    )  # fmt: skip


def fill(filling: Filling, namespace: str, minutes: int) -> None:
    """Index a document of each family; ``minutes``: their time before now, of which their ids are made."""
    moment = NOW - timedelta(minutes=minutes)
    refused = a_refused_attempt(f"{namespace}/waits", moment)
    bind_at = moment - timedelta(seconds=30)
    failed_bind = an_attempt(f"{namespace}/locked", started_at=bind_at, nodes=("node1",), chosen="node1", bound=False)
    filling.index(refused, failed_bind)
    minute = Minute("default", refused.started_at, 0, NOW)
    minute.put(namespace, list_weights(namespace, derive_contribution(refused, None, "CardInsufficientMemory")), ())
    filling.index_trends(*build_records(minute))
    filling.index_findings(a_finding(f"{namespace}/waits", found_at=moment))
    filling.index_placements(a_placement(namespace))


@pytest.fixture(scope="module")
def node() -> Iterator[SecuredOpenSearch]:
    (role,) = re.findall(r"```json\n(.*?)```", _PAGE, re.DOTALL)
    with secured_opensearch() as node:
        put = node.administrator.put
        answers = [put(f"/_component_template/{SETTINGS_TEMPLATE}", json=build_settings_template())]
        answers += [put(f"/_index_template/{index.alias}", json=index.build_template()) for index in INDICES]
        answers.append(put("/_plugins/_security/api/roles/schedulerlog-ml", json=json.loads(role)))
        answers.append(put("/_plugins/_security/api/rolesmapping/schedulerlog-ml", json={"users": [READER]}))
        assert_all_succeeded(answers)
        for minutes, namespace in enumerate((NAMESPACE, "vision"), 1):
            fill(SecuredFilling(node), namespace, minutes)
        yield node


@pytest.fixture(scope="module")
def reader(node: SecuredOpenSearch) -> Iterator[httpx.Client]:
    trusted = ssl.create_default_context(cafile=node.ca_file)
    trusted.load_cert_chain(*node.issue(READER))
    with httpx.Client(base_url=node.url, verify=trusted, trust_env=False, timeout=30.0) as client:
        yield client


def build_request(kind: str, name: str) -> tuple[str, Any]:
    """Build the pattern's title and the body as Dashboards does."""
    saved = IMPORTED.objects[kind, name]
    pattern = IMPORTED.get_pattern(saved)
    assert pattern is not None
    since, until = ((NOW + timedelta(hours=hours)).isoformat() for hours in (-1, 1))
    if kind == "visualization":
        return pattern["attributes"]["title"], search_body(saved, pattern, since, until)
    return pattern["attributes"]["title"], {"size": 100, "query": query_of(saved, pattern, since, until)}


def search(client: httpx.Client, title: str, body: Any) -> Any:
    answer = client.post(f"/{title}/_search", content=orjson.dumps(body), headers={"content-type": "application/json"})
    assert answer.is_success, answer.text
    page: Any = answer.json()
    assert page["_shards"]["failed"] == 0
    return page


@pytest.mark.parametrize(("kind", "name"), SEARCHING)
def test_a_panel_shows_the_reader_what_the_administrator_sees_of_the_namespace(
    node: SecuredOpenSearch, reader: httpx.Client, kind: str, name: str
) -> None:
    title, body = build_request(kind, name)
    of_reader, of_everybody = search(reader, title, body), search(node.administrator, title, body)
    body["query"]["bool"]["filter"].append({"term": {"namespace": NAMESPACE}})
    of_administrator = search(node.administrator, title, body)
    assert of_reader["hits"]["total"] == of_administrator["hits"]["total"]
    assert [hit["_id"] for hit in of_reader["hits"]["hits"]] == [hit["_id"] for hit in of_administrator["hits"]["hits"]]
    assert of_reader.get("aggregations") == of_administrator.get("aggregations")
    # The history is that of a pod whom people write into its query.
    if name != "schedulerlog-pod-history":
        assert 0 < of_reader["hits"]["total"]["value"] < of_everybody["hits"]["total"]["value"]


def test_the_reader_sees_documents_of_the_namespace_in_each_family_and_of_no_other(
    node: SecuredOpenSearch, reader: httpx.Client
) -> None:
    for family in ("attempts", "trends", "findings", "occupancy", "pod-states"):
        assert list_namespaces(reader, family) == {NAMESPACE}, family
        assert list_namespaces(node.administrator, family) == {NAMESPACE, "vision"}, family


def list_namespaces(client: httpx.Client, family: str) -> set[str]:
    body = {"size": 0, "aggs": {"namespaces": {"terms": {"field": "namespace"}}}}
    answer = search(client, f"schedulerlog-{family}", body)
    return {bucket["key"] for bucket in answer["aggregations"]["namespaces"]["buckets"]}


def test_the_reader_may_not_write(reader: httpx.Client) -> None:
    assert reader.post("/schedulerlog-attempts/_doc", json={}).status_code == httpx.codes.FORBIDDEN
    assert reader.delete("/schedulerlog-attempts-*").status_code == httpx.codes.FORBIDDEN
