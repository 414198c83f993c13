"""What is visible from outside: the topics, the index and the API, read without any code of the pipeline."""

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

    def seen(self, namespace: str, pods: list[str]) -> Seen:
        """Everything that can be seen of a namespace now."""
        # What follows first: what it was made from is then there too.
        documents = self._documents("attempts", _of(namespace))
        names = (*_BY_POD, TRENDS.name)
        records = dict(zip(names, asyncio.run(self._topics(names)), strict=True))
        own = {
            name: [
                record for record in records[name] if (record.key or b"").startswith(f"default/{namespace}/".encode())
            ]
            for name in _BY_POD
        }
        return Seen(
            decisions={_id(record): record.value for record in own[DECISIONS.name] if "ce_id" in dict(record.headers)},
            attempts=[(hit["_source"]["attempt_id"], hit["_source"]) for hit in documents],
            devices=self._devices(namespace),
            summaries=[_json(record) for record in own[ATTEMPTS.name]],
            messages=[(_id(record), _json(record)) for record in own[MESSAGES.name]],
            schedulerlogs={pod: log for pod in pods if (log := self._schedulerlog(namespace, pod))},
            dead_letters=len(own[DEAD_LETTERS.name]),
            partitions=len({record.partition for record in own[DECISIONS.name]}),
            topics=Topics(
                attempts=_with_ids(own[ATTEMPTS.name]),
                messages=_with_ids(own[MESSAGES.name]),
                device_verdicts=_with_ids(own[DEVICE_VERDICTS.name]),
                attempt_counts=_with_ids(own[ATTEMPT_COUNTS.name]),
                histories=_histories(own[POD_HISTORIES.name]),
                trends=_attempts_by_result(records[TRENDS.name], namespace),
            ),
            indexed_trends=self._indexed_trends(namespace),
            pod_states={hit["_source"]["pod"]: hit["_source"] for hit in self._documents("pod-states", _of(namespace))},
        )

    def _indexed_trends(self, namespace: str) -> dict[str, int]:
        query = {"bool": {"filter": [_of(namespace), {"term": {"dimension": "all"}}]}}
        found: Counter[str] = Counter()
        for hit in self._documents("trends", query):
            found[hit["_source"]["result"]] += hit["_source"]["attempts"]
        return {result: count for result, count in found.items() if count}

    def seen_states(self, epochs: set[int], namespace: str, pods: Iterable[str]) -> SeenStates:
        """Everything that can be seen of states now; documents only of these epochs, answers only about these pods."""
        records, dead = asyncio.run(self._topics((NODE_STATES.name, DEAD_LETTERS.name)))
        published: dict[str, list[bytes]] = {}
        for record in records:
            published.setdefault(_id(record), []).append(record.value)
        query = {"terms": {"epoch": sorted(epochs)}}
        documents = [
            (hit["_index"], hit["_id"], hit["_source"]["state"]) for hit in self._documents("node-states", query)
        ]
        letters = [
            _id(letter) for letter in dead if dict(letter.headers)["dead_letter_topic"] == NODE_STATES.name.encode()
        ]
        shown = {f"default/{namespace}/{pod}": self._shown(namespace, pod) for pod in pods}
        return SeenStates(published, documents, letters, shown)

    def _shown(self, namespace: str, pod: str) -> list[tuple[str, str]]:
        log = self._schedulerlog(namespace, pod, detail="full", node=SHOWN_NODE) or {}
        return [(device["uuid"], device["verdict"]) for device in log.get("devices") or ()]

    def attempts(self, namespace: str) -> int:
        """How many attempts the index has of a namespace."""
        try:
            return len(self._documents("attempts", _of(namespace), source=False))
        except (httpx.TransportError, KeyError):
            return -1

    def status(self, namespace: str, pod: str) -> str | None:
        """How the latest attempt of the pod ended, as the API says; None where it does not answer, or not know it."""
        try:
            return (self._schedulerlog(namespace, pod) or {}).get("status")
        except httpx.TransportError:
            return None

    def _devices(self, namespace: str) -> dict[str, Any]:
        """Device records by id."""
        return {hit["_id"]: hit["_source"] for hit in self._documents("devices", _of(namespace))}

    def _documents(self, kind: str, query: dict[str, Any], *, source: bool = True) -> list[Any]:
        url = f"{self.opensearch_url}/schedulerlog-{kind}"
        self.client.post(f"{url}/_refresh", params={"ignore_unavailable": "true"})
        found: list[Any] = []
        body: dict[str, Any] = {"size": 1000, "_source": source, "query": query}
        # The same id may be in the indices of several days.
        body["sort"] = [*([{"attempt_id": "asc"}] if kind == "attempts" else []), {"_id": "asc"}, {"_index": "asc"}]
        while True:
            answer = self.client.post(f"{url}/_search", json=body, params={"ignore_unavailable": "true"}).json()
            hits = answer["hits"]["hits"]
            found += hits
            if len(hits) < 1000:
                return found
            body["search_after"] = hits[-1]["sort"]

    def _schedulerlog(self, namespace: str, pod: str, **query: str) -> Any:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/schedulerlog"
        answer = self.client.get(self.api_url + path, params=query)
        return answer.json() if answer.status_code == 200 else None

    async def _topics(self, names: Iterable[str]) -> list[list[Any]]:
        return await asyncio.gather(*(self._topic(name) for name in names))

    async def _topic(self, name: str) -> list[Any]:
        consumer = AIOKafkaConsumer(
            name, bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest", group_id=None
        )
        async with consumer:
            ends = await consumer.end_offsets(consumer.assignment())
            found: list[Any] = []
            while any([await consumer.position(partition) < end for partition, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += records
            return found


def _histories(records: Iterable[Any]) -> dict[str, bytes]:
    """By key, what a worker that takes over goes by: of two, not the one that a worker wrote that had been stopped
    meanwhile, which knows of fewer decisions."""
    found: dict[str, Any] = {}
    for record in records:
        key, until = record.key.decode(), json.loads(record.value)["published_until"]
        if until >= found.get(key, (until, b""))[0]:
            found[key] = until, record.value
    return {key: value for key, (_, value) in found.items()}


def _with_ids(records: Iterable[Any]) -> list[tuple[str, bytes]]:
    return [(_id(record), record.value) for record in records]


def _attempts_by_result(trends: Iterable[Any], namespace: str) -> dict[str, int]:
    """Of the latest version of each minute; the counts of a minute may come in parts, and over several windows."""
    latest: dict[tuple[Any, ...], tuple[int, dict[int, Any]]] = {}
    for value in map(_json, trends):
        minute = value["started_at"], value["partition"], value["recorded_at"]
        version, parts = latest.get(minute, (value["version"], {}))
        if value["version"] > version:
            version, parts = value["version"], {}
        if value["version"] == version:
            latest[minute] = version, parts | {value.get("part", 0): value}
    found: Counter[str] = Counter()
    for value in (part for _, parts in latest.values() for part in parts.values()):
        columns = (value[name] for name in ("namespace", "dimension", "result", "attempts"))
        for place, dimension, result, attempts in zip(*columns, strict=True):
            if place == namespace and dimension == "all":
                found[result] += attempts
    return {result: count for result, count in found.items() if count}


def _of(namespace: str) -> dict[str, Any]:
    return {"term": {"namespace": namespace}}


def _id(record: Any) -> str:
    return str(dict(record.headers)["ce_id"].decode())


def _json(record: Any) -> Any:
    return json.loads(record.value)
