"""Puts attempts where the worker would put them: onto the topic and into the index."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson
from aiokafka import AIOKafkaProducer

from engine.diagnosis.waiting import derive_wait_without_attempt
from engine.summaries.merge import settle
from engine.summaries.messages import build_search_text
from schemas.codec.chunking import split
from schemas.codec.records import EncodedRecord, encode, encode_value
from schemas.documents.attempts import build_attempt_document, build_finding_document
from schemas.documents.devices import build_devices_document, build_node_state_document
from schemas.documents.observations import Observed, build_observation_document
from schemas.documents.placements import build_placement_document
from schemas.documents.pod_states import PodStateDocument, derive_state_after_attempt, derive_state_after_observation
from schemas.documents.trends import build_trend_documents
from schemas.events import (
    AttemptSummarized,
    BindOutcome,
    DevicesJudged,
    FindingReported,
    LockHolder,
    NodeStateChanged,
    PodObserved,
    PodRef,
    Refusal,
    Report,
    Request,
    TrendsCounted,
)
from schemas.ids import derive_attempt_id
from schemas.index_family import SETTINGS_TEMPLATE, Index, build_settings_template
from schemas.indices import (
    ATTEMPTS,
    DEVICES,
    FINDINGS,
    INDICES,
    NODE_STATES,
    OBSERVATIONS,
    OCCUPANCY,
    POD_STATES,
    TRENDS,
)
from schemas.placements import PodPlacement
from schemas.topics import ATTEMPTS as TOPIC
from schemas.topics import NODE_STATES as STATES_TOPIC
from schemas.topics import PODS as PODS_TOPIC
from tests.support.harness.topics import provision_all

NOW = datetime.now(UTC).replace(microsecond=123_456)


def an_attempt(
    pod: str = "default/gpu-pod",
    *,
    started_at: datetime = NOW,
    nodes: Sequence[str] = ("node1", "node2"),
    reason: str = "CardInsufficientMemory",
    chosen: str | None = None,
    bound: bool | None = None,
    devices: Sequence[str] = (),
) -> AttemptSummarized:
    """Every node but the chosen one refuses all of its eight devices for ``reason``."""
    namespace, name = pod.split("/")
    uid = f"uid-{name}"
    verdict = [1 if node == chosen else 0 for node in nodes]
    bind = None
    if bound is not None:
        error = "" if bound else f"node {chosen} has been locked within 5m0s: node lock contention"
        ended_at = started_at + timedelta(milliseconds=40)
        holder = None if bound else LockHolder()
        bind = BindOutcome(node=chosen or "", bound=bound, error=error, ended_at=ended_at, lock_holder=holder)
    name_of_attempt = derive_attempt_id("default", "hami-scheduler", uid, started_at)
    ended_at = started_at + timedelta(milliseconds=13)
    summary = AttemptSummarized(
        cluster="default",
        attempt_id=name_of_attempt,
        pod=PodRef(namespace=namespace, name=name, uid=uid),
        scheduler="hami-scheduler",
        started_at=started_at,
        version=0,
        status="failed",
        ended_at=ended_at,
        reports=[Report(source="scheduler", attempt_id=name_of_attempt, started_at=started_at, ended_at=ended_at)],
        requests=[Request(container="main", vendor="NVIDIA", count=1, memory_mib=3000)],
        node_policy="binpack",
        offered_nodes=len(nodes),
        fit_nodes=sum(verdict),
        judged_devices=8 * len(nodes),
        chosen=chosen,
        picked_devices=list(devices),
        bind=bind,
        verdicts=["refused", "picked"],
        refusals=[Refusal(counts={reason: 8}, devices=8)],
        nodes=list(nodes),
        verdict=verdict,
        score=[11.579 if code else 0.0 for code in verdict],
        refused_by=[-1 if code else 0 for code in verdict],
        refusal=[-1 if code else 0 for code in verdict],
    )
    return settle(summary)


def join_episode(attempts: Iterable[AttemptSummarized]) -> list[AttemptSummarized]:
    """Join the attempts into one episode, as the worker publishes them when they end alike."""
    listed = list(attempts)
    first = min(listed, key=lambda attempt: attempt.started_at)
    episode_fields = {"episode": first.attempt_id, "episode_started_at": first.started_at}
    return [attempt.model_copy(update=episode_fields) for attempt in listed]


def a_finding(
    pod: str, finding: str = "Overcommitted", *, node: str = "node1", device: str = "", found_at: datetime = NOW
) -> FindingReported:
    attempt = an_attempt(pod, started_at=found_at - timedelta(milliseconds=13))
    return FindingReported(
        cluster="default",
        attempt_id=attempt.attempt_id,
        pod=attempt.pod,
        scheduler=attempt.scheduler,
        started_at=attempt.started_at,
        finding=finding,
        found_at=found_at,
        node=node,
        device=device,
        numbers={"memory_total_mib": 40960, "memory_taken_mib": 50000},
        evidence=[f"{node} gave {device or 'everything'} to {pod}"],
    )


def write_lines(*summaries: AttemptSummarized) -> bytes:
    """Write the body of a bulk request that the worker would send."""
    lines: list[bytes] = []
    for summary in summaries:
        head: dict[str, Any] = {"_index": ATTEMPTS.name(summary.started_at), "_id": summary.attempt_id}
        head |= {"version": summary.version, "version_type": "external_gte"}
        lines += [
            orjson.dumps({"index": head}),
            encode_value(build_attempt_document(summary, build_search_text(summary))),
        ]
    return b"\n".join([*lines, b""])


class Filling:
    """The two stores, provisioned."""

    def __init__(self, bootstrap_servers: str, opensearch_url: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.url = opensearch_url

    def provision(self) -> None:
        asyncio.run(provision_all(self.bootstrap_servers))
        templates = {f"_component_template/{SETTINGS_TEMPLATE}": build_settings_template()}
        templates |= {f"_index_template/{index.alias}": index.build_template() for index in INDICES}
        for path, template in templates.items():
            httpx.put(f"{self.url}/{path}", json=template, timeout=30).raise_for_status()

    def publish(self, *summaries: AttemptSummarized, raw: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Publish onto the topic, and after them ``raw`` records (key and value) that nobody checked."""
        parts = [encode(part) for summary in summaries for part in split(summary)]
        asyncio.run(self._publish(TOPIC.name, parts, raw))

    def publish_states(self, *states: NodeStateChanged) -> None:
        """Publish onto the topic of node states."""
        asyncio.run(self._publish(STATES_TOPIC.name, list(map(encode, states))))

    def publish_observations(self, *events: PodObserved) -> None:
        """Publish onto the topic of pods."""
        asyncio.run(self._publish(PODS_TOPIC.name, list(map(encode, events))))

    async def _publish(
        self, topic: str, records: Iterable[EncodedRecord], raw: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap_servers, acks="all")
        await producer.start()
        try:
            for record in records:
                await producer.send(topic, record.value, record.key, headers=record.headers)
            for key, value in raw:
                await producer.send(topic, value, key)
        finally:
            await producer.stop()

    def index(self, *summaries: AttemptSummarized) -> None:
        self.send_bulk(write_lines(*summaries))
        self.index_pod_states(map(derive_state_after_attempt, summaries))

    def index_pod_states(self, states: Iterable[PodStateDocument | None]) -> None:
        """Index as the index writer does: the latest of each pod counts, whatever was indexed before."""
        lines: list[bytes] = []
        for state in sorted((document for document in states if document), key=lambda document: document.version):
            head = {"_index": POD_STATES.name(NOW), "_id": state.id, "version": state.version}
            lines += [orjson.dumps({"index": head | {"version_type": "external_gte"}}), encode_value(state.fields)]
        if lines:
            self.send_bulk(b"\n".join([*lines, b""]), allowed=409)

    def index_devices(self, *events: DevicesJudged) -> None:
        self._index(
            (DEVICES, event.started_at, event.id, build_devices_document(event, encode(event).value))
            for event in events
        )

    def index_states(self, *states: NodeStateChanged, written_at: datetime | None = None) -> None:
        """Index on the day on which they were written: when they were observed, or later again."""
        for state in states:
            day = written_at or state.observed_at
            self._index([(NODE_STATES, day, state.id, build_node_state_document(state, day))])

    def index_findings(self, *events: FindingReported) -> None:
        self._index((FINDINGS, event.started_at, event.id, build_finding_document(event)) for event in events)

    def index_placements(self, *placements: PodPlacement) -> None:
        self._index(
            (OCCUPANCY, placement.started_at, placement.id, build_placement_document(placement, {}))
            for placement in placements
        )

    def index_trends(self, *events: TrendsCounted) -> None:
        self._index(
            (TRENDS, event.started_at, name, document)
            for event in events
            for name, document in build_trend_documents(event)
        )

    def index_observations(self, *events: Observed) -> None:
        self._index(
            (OBSERVATIONS, event.observed_at, event.id, build_observation_document(event, event.id)) for event in events
        )
        self.index_pod_states(
            derive_state_after_observation(event, derive_wait_without_attempt(event))
            for event in events
            if isinstance(event, PodObserved)
        )

    def _index(self, documents: Iterable[tuple[Index, datetime, str, dict[str, Any]]]) -> None:
        lines: list[bytes] = []
        for index, day, name, document in documents:
            head = {"_index": index.name(day), "_id": name}
            lines += [orjson.dumps({"index": head}), encode_value(document)]
        self.send_bulk(b"\n".join([*lines, b""]))

    def send_bulk(self, lines: bytes, allowed: int = 200) -> None:
        """Send a bulk request. ``allowed``: the status that a single document may have apart from success."""
        headers = {"content-type": "application/x-ndjson"}
        answer = httpx.post(f"{self.url}/_bulk?refresh=true", content=lines, headers=headers, timeout=60)
        results = [next(iter(item.values())) for item in answer.raise_for_status().json()["items"]]
        assert all(result["status"] in (200, 201, allowed) for result in results), answer.text[:2000]
