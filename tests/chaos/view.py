"""View from outside: the topics, the index and the API, read without any code of the pipeline."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import httpx
from aiokafka import AIOKafkaConsumer

from schemas.topics import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    DEAD_LETTERS,
    DECISIONS,
    DEVICE_VERDICTS,
    MESSAGES,
    NODE_STATES,
    POD_HISTORIES,
    TRENDS,
)
from tests.chaos.ledger import Seen
from tests.chaos.published import Topics
from tests.chaos.states import SHOWN_NODE, SeenStates

_BY_POD: Final = tuple(
    topic.name
    for topic in (DECISIONS, ATTEMPTS, MESSAGES, DEVICE_VERDICTS, ATTEMPT_COUNTS, POD_HISTORIES, DEAD_LETTERS)
)
"""Topics whose keys begin with the cluster and the namespace of a pod."""


@dataclass(frozen=True, slots=True)
class View:
    bootstrap_servers: str
    opensearch_url: str
    api_url: str
    client: httpx.Client

    def read_seen(self, namespace: str, pods: list[str]) -> Seen:
        """Read everything that is visible of a namespace now."""
        # What follows first: what it was made from is then there too.
        documents = self._search_documents("attempts", _match_namespace(namespace))
        names = (*_BY_POD, TRENDS.name)
        records = dict(zip(names, asyncio.run(self._read_topics(names)), strict=True))
        of_pods = {
            name: [
                record for record in records[name] if (record.key or b"").startswith(f"default/{namespace}/".encode())
            ]
            for name in _BY_POD
        }
        return Seen(
            decisions={
                _get_id(record): record.value for record in of_pods[DECISIONS.name] if "ce_id" in dict(record.headers)
            },
            attempts=[(hit["_source"]["attempt_id"], hit["_source"]) for hit in documents],
            devices=self._read_devices(namespace),
            summaries=[_parse_value(record) for record in of_pods[ATTEMPTS.name]],
            messages=[(_get_id(record), _parse_value(record)) for record in of_pods[MESSAGES.name]],
            schedulerlogs={pod: log for pod in pods if (log := self._get_schedulerlog(namespace, pod))},
            dead_letters=len(of_pods[DEAD_LETTERS.name]),
            partitions=len({record.partition for record in of_pods[DECISIONS.name]}),
            topics=Topics(
                attempts=_with_ids(of_pods[ATTEMPTS.name]),
                messages=_with_ids(of_pods[MESSAGES.name]),
                device_verdicts=_with_ids(of_pods[DEVICE_VERDICTS.name]),
                attempt_counts=_with_ids(of_pods[ATTEMPT_COUNTS.name]),
                histories=_select_histories(of_pods[POD_HISTORIES.name]),
                trends=_count_by_result(records[TRENDS.name], namespace),
            ),
            indexed_trends=self._count_indexed_trends(namespace),
            pod_states={
                hit["_source"]["pod"]: hit["_source"]
                for hit in self._search_documents("pod-states", _match_namespace(namespace))
            },
        )

    def _count_indexed_trends(self, namespace: str) -> dict[str, int]:
        query = {"bool": {"filter": [_match_namespace(namespace), {"term": {"dimension": "all"}}]}}
        counts: Counter[str] = Counter()
        for hit in self._search_documents("trends", query):
            counts[hit["_source"]["result"]] += hit["_source"]["attempts"]
        return {result: count for result, count in counts.items() if count}

    def read_states(self, epochs: set[int], namespace: str, pods: Iterable[str]) -> SeenStates:
        """Read all visible states; documents only of these epochs, answers only about these pods."""
        records, dead = asyncio.run(self._read_topics((NODE_STATES.name, DEAD_LETTERS.name)))
        published: dict[str, list[bytes]] = {}
        for record in records:
            published.setdefault(_get_id(record), []).append(record.value)
        query = {"terms": {"epoch": sorted(epochs)}}
        documents = [
            (hit["_index"], hit["_id"], hit["_source"]["state"]) for hit in self._search_documents("node-states", query)
        ]
        letters = [
            _get_id(letter) for letter in dead if dict(letter.headers)["dead_letter_topic"] == NODE_STATES.name.encode()
        ]
        device_rows = {f"default/{namespace}/{pod}": self._read_device_rows(namespace, pod) for pod in pods}
        return SeenStates(published, documents, letters, device_rows)

    def _read_device_rows(self, namespace: str, pod: str) -> list[tuple[str, str]]:
        log = self._get_schedulerlog(namespace, pod, detail="full", node=SHOWN_NODE) or {}
        return [(device["uuid"], device["verdict"]) for device in log.get("devices") or ()]

    def count_attempts(self, namespace: str) -> int:
        """Count the attempts that the index has of a namespace."""
        try:
            return len(self._search_documents("attempts", _match_namespace(namespace), source=False))
        except (httpx.TransportError, KeyError):
            return -1

    def get_status(self, namespace: str, pod: str) -> str | None:
        """Return how the pod's latest attempt ended, as the API says; None if it does not answer, or not know it."""
        try:
            return (self._get_schedulerlog(namespace, pod) or {}).get("status")
        except httpx.TransportError:
            return None

    def _read_devices(self, namespace: str) -> dict[str, Any]:
        """Return the device records by id."""
        return {hit["_id"]: hit["_source"] for hit in self._search_documents("devices", _match_namespace(namespace))}

    def _search_documents(self, kind: str, query: dict[str, Any], *, source: bool = True) -> list[Any]:
        url = f"{self.opensearch_url}/schedulerlog-{kind}"
        self.client.post(f"{url}/_refresh", params={"ignore_unavailable": "true"})
        documents: list[Any] = []
        body: dict[str, Any] = {"size": 1000, "_source": source, "query": query}
        # The same id may be in the indices of several days.
        body["sort"] = [*([{"attempt_id": "asc"}] if kind == "attempts" else []), {"_id": "asc"}, {"_index": "asc"}]
        while True:
            answer = self.client.post(f"{url}/_search", json=body, params={"ignore_unavailable": "true"}).json()
            hits = answer["hits"]["hits"]
            documents += hits
            if len(hits) < 1000:
                return documents
            body["search_after"] = hits[-1]["sort"]

    def _get_schedulerlog(self, namespace: str, pod: str, **query: str) -> Any:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/schedulerlog"
        answer = self.client.get(self.api_url + path, params=query)
        return answer.json() if answer.status_code == 200 else None

    async def _read_topics(self, names: Iterable[str]) -> list[list[Any]]:
        return await asyncio.gather(*(self._read_topic(name) for name in names))

    async def _read_topic(self, name: str) -> list[Any]:
        consumer = AIOKafkaConsumer(
            name, bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest", group_id=None
        )
        async with consumer:
            ends = await consumer.end_offsets(consumer.assignment())
            topic_records: list[Any] = []
            while any([await consumer.position(partition) < end for partition, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    topic_records += records
            return topic_records


def _select_histories(records: Iterable[Any]) -> dict[str, bytes]:
    """Select by key what a worker that takes over goes by: of two, not the one of a worker that was stopped meanwhile,
    which knows of fewer decisions."""
    histories: dict[str, Any] = {}
    for record in records:
        key, until = record.key.decode(), json.loads(record.value)["published_until"]
        if until >= histories.get(key, (until, b""))[0]:
            histories[key] = until, record.value
    return {key: value for key, (_, value) in histories.items()}


def _with_ids(records: Iterable[Any]) -> list[tuple[str, bytes]]:
    return [(_get_id(record), record.value) for record in records]


def _count_by_result(trends: Iterable[Any], namespace: str) -> dict[str, int]:
    """Count in the latest version of each minute, whose counts may come in parts, and over several windows."""
    latest: dict[tuple[Any, ...], tuple[int, dict[int, Any]]] = {}
    for value in map(_parse_value, trends):
        minute = value["started_at"], value["partition"], value["recorded_at"]
        version, parts = latest.get(minute, (value["version"], {}))
        if value["version"] > version:
            version, parts = value["version"], {}
        if value["version"] == version:
            latest[minute] = version, parts | {value.get("part", 0): value}
    counts: Counter[str] = Counter()
    for value in (part for _, parts in latest.values() for part in parts.values()):
        columns = (value[name] for name in ("namespace", "dimension", "result", "attempts"))
        for row_namespace, dimension, result, attempts in zip(*columns, strict=True):
            if row_namespace == namespace and dimension == "all":
                counts[result] += attempts
    return {result: count for result, count in counts.items() if count}


def _match_namespace(namespace: str) -> dict[str, Any]:
    return {"term": {"namespace": namespace}}


def _get_id(record: Any) -> str:
    return str(dict(record.headers)["ce_id"].decode())


def _parse_value(record: Any) -> Any:
    return json.loads(record.value)
