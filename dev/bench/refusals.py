"""What finding refusals by node and reason costs in the index: terms of the attempt's document against other ways."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import orjson

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.backlog import of_day, post_all
from dev.bench.bodies import InProcess
from dev.bench.report import Figure, Result, against_first
from dev.demo.stack import provisioned
from pipeline.sinks.bulk import Document
from schemas.indices import ATTEMPTS

NODES, COUNT = 5_000, 60
STATS_SECONDS = 11
"""OpenSearch updates the sizes of its files every ten."""
PER_NODE = "bench-refusals-2001.01.03"
_KEPT = ("@timestamp", "cluster", "attempt_id", "namespace", "pod", "pod_uid", "scheduler", "status")


def refusals() -> Result:
    """Bytes of an attempt's document, and what ``node_reasons`` adds; a document per refusing node beside it."""
    with provisioned(FOLDER / "refusals") as (backends, _):
        url = backends.opensearch_url
        documents = of_day(list(_attempts()), "2001.01.01")
        without = of_day(
            [_edited(document, lambda fields: fields | {"node_reasons": None}) for document in documents], "2001.01.02"
        )
        nodes = [node for document in documents for node in _by_node(document)]
        mapping = {"dynamic_templates": [{"text": {"match": "*", "mapping": {"type": "keyword"}}}]}
        codec = {"index": {"codec": "best_compression"}}
        httpx.put(f"{url}/{PER_NODE}", json={"mappings": mapping, "settings": codec}).raise_for_status()
        figures = [
            Figure("the document without node_reasons", _stored(url, without), "index bytes"),
            Figure("the document with node_reasons", _stored(url, documents), "index bytes"),
            Figure("instead of it: documents per refusing node, alone", _stored(url, nodes), "index bytes"),
        ]
        asked = {"term": {"node_reasons": orjson.loads(documents[0].source)["node_reasons"][0]}}
        seconds = _seconds(url, {"size": 0, "track_total_hits": True, "query": asked})
        note = f"a count by node and reason: {seconds * 1000:.1f} ms, the fastest of 50"
        figures[1] = replace(figures[1], note=note)
    return Result(
        "refusals",
        "Index bytes of an attempt, segments merged, by how its refusals are found by node and reason together",
        f"{COUNT} attempts on {NODES:,} nodes x 8, 1 % of the nodes change between two",
        against_first(figures, lambda first, this: this / first),
    )


def _attempts() -> Iterator[Document]:
    alone = InProcess()
    for _, records in cluster.attempts_and_states(NODES, COUNT, changing=0.01):
        yield from (document for document in alone.attempt(records) if document.index.startswith(ATTEMPTS.alias))


def _edited(document: Document, edit: Any) -> Document:
    return replace(document, source=orjson.dumps(edit(orjson.loads(document.source))))


def _by_node(document: Document) -> Iterator[Document]:
    fields = orjson.loads(document.source)
    kept = {name: fields[name] for name in _KEPT}
    for number, pair in enumerate(fields["node_reasons"]):
        node, _, reason = pair.partition("|")
        yield Document(PER_NODE, f"{document.id}-{number}", orjson.dumps(kept | {"node": node, "reason": reason}))


def _stored(url: str, documents: Sequence[Document]) -> float:
    """Bytes on disk for each attempt."""
    post_all(url, documents)
    index = documents[0].index
    merged = f"{url}/{index}/_forcemerge?max_num_segments=1&flush=true"
    httpx.post(merged, timeout=300).raise_for_status()
    time.sleep(STATS_SECONDS)
    stats = httpx.get(f"{url}/{index}/_stats/store", timeout=30).raise_for_status().json()
    return float(stats["_all"]["primaries"]["store"]["size_in_bytes"]) / COUNT


def _seconds(url: str, body: dict[str, Any]) -> float:
    def once() -> float:
        began = time.perf_counter()
        answer = client.post(f"{url}/{ATTEMPTS.alias}-2001.01.01/_search", json=body).raise_for_status()
        assert answer.json()["hits"]["total"]["value"] > 0
        return time.perf_counter() - began

    with httpx.Client(timeout=30) as client:
        return min(once() for _ in range(50))
