"""What is visible from outside: the topics, the index and the API, read without any code of the pipeline."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx
from aiokafka import AIOKafkaConsumer

from schemas.topics import ATTEMPTS, DEAD_LETTERS, DECISIONS, MESSAGES, NODE_STATES
from tests.chaos.ledger import Seen
from tests.chaos.states import SHOWN_NODE, SeenStates


@dataclass(frozen=True, slots=True)
class View:
    bootstrap_servers: str
    opensearch_url: str
    api_url: str
    client: httpx.Client

    def seen(self, namespace: str, pods: list[str]) -> Seen:
        """Everything that can be seen of a namespace now."""
        names = (DECISIONS.name, ATTEMPTS.name, MESSAGES.name, DEAD_LETTERS.name)
        records = dict(zip(names, asyncio.run(self._topics(names)), strict=True))
        own = {
            name: [each for each in found if each.key.decode().startswith(f"{namespace}/")]
            for name, found in records.items()
        }
        return Seen(
            decisions={_id(each): each.value for each in own[DECISIONS.name] if "ce_id" in dict(each.headers)},
            attempts=[
                (hit["_source"]["attempt_id"], hit["_source"]) for hit in self._documents("attempts", _of(namespace))
            ],
            devices=self._devices(namespace),
            summaries=[_json(each) for each in own[ATTEMPTS.name]],
            messages=[(_id(each), _json(each)) for each in own[MESSAGES.name]],
            schedulerlogs={pod: log for pod in pods if (log := self._schedulerlog(namespace, pod))},
            dead_letters=len(own[DEAD_LETTERS.name]),
            partitions=len({each.partition for each in own[DECISIONS.name]}),
        )

    def seen_states(self, epochs: set[int], namespace: str, pods: Iterable[str]) -> SeenStates:
        """Everything that can be seen of states now; documents only of these epochs, answers only about these pods."""
        records, dead = asyncio.run(self._topics((NODE_STATES.name, DEAD_LETTERS.name)))
        published: dict[str, list[bytes]] = {}
        for each in records:
            published.setdefault(_id(each), []).append(each.value)
        query = {"terms": {"epoch": sorted(epochs)}}
        documents = [
            (hit["_index"], hit["_id"], hit["_source"]["state"]) for hit in self._documents("node-states", query)
        ]
        letters = [_id(each) for each in dead if dict(each.headers)["dead_letter_topic"] == NODE_STATES.name.encode()]
        shown = {f"{namespace}/{pod}": self._shown(namespace, pod) for pod in pods}
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
            while any([await consumer.position(each) < end for each, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += records
            return found


def _of(namespace: str) -> dict[str, Any]:
    return {"term": {"namespace": namespace}}


def _id(record: Any) -> str:
    return str(dict(record.headers)["ce_id"].decode())


def _json(record: Any) -> Any:
    return json.loads(record.value)
