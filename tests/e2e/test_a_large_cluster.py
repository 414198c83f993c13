"""One attempt on 1,000 nodes x 8 devices, all refused: from POST /filter to the API, and what it weighs on the wire.

On 5,000 nodes in ``make stress``.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from dev.bench import cluster
from dev.demo.reader import build_schedulerlog_path, until
from dev.demo.stack import Stack
from schemas.topics import DECISIONS, NODE_STATES, Topic
from tests.support.reused_backends import shared_stack
from tests.support.stress import IS_STRESS

NODES = 5_000 if IS_STRESS else 1_000
VERDICTS = NODES * cluster.DEVICES_PER_NODE
pytestmark = pytest.mark.stress
POD = "llm/hopeless-0"
LAST_NODE = f"gpu-node-{NODES - 1:05d}"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("five-thousand")
    names = cluster.write_cluster(NODES, folder / "source.json")
    with shared_stack(folder, folder / "source.json") as running:
        assert running.kube_scheduler.filter(cluster.build_hopeless_pod(), names) is None
        until(lambda: running.reader.get_status(POD), "failed", timeout_seconds=120)
        yield running


def test_the_api_answers_with_every_node_and_its_counted_reasons(judged: Stack) -> None:
    log = judged.reader.get_schedulerlog(POD)
    assert log["status"] == "failed"
    assert log["filter"]["summary"] == f"no available node, {NODES} nodes do not meet"
    nodes = log["filter"]["nodes"]
    assert [node["name"] for node in nodes] == [f"gpu-node-{number:05d}" for number in range(NODES)]
    for node in nodes:
        (container,) = node["containers"]
        counts = [part.split(" ")[0].split("/") for part in container["reason"].split(", ")]
        assert {total for _, total in counts} == {"8"}, node
        assert sum(int(count) for count, _ in counts) == 8, node


def test_the_records_are_plain_json_with_cloudevents_headers_below_64_kib(judged: Stack) -> None:
    decisions = asyncio.run(read(judged.backends.bootstrap_servers, DECISIONS))
    states = asyncio.run(read(judged.backends.bootstrap_servers, NODE_STATES))
    assert decisions
    for value, headers in decisions + states:
        assert len(value) < 64 * 1024
        assert {"ce_id", "ce_type", "ce_source", "ce_time", "ce_specversion", "content-type"} <= set(headers)
    values = [json.loads(value) for value, _ in decisions]
    assert all(decision["pod"] == {"namespace": "llm", "name": "hopeless-0", "uid": get_uid()} for decision in values)
    assert sum(len(decision["verdict"]) for decision in values if "rows" in decision) == VERDICTS


def test_each_verdict_is_about_a_device_of_the_state_that_it_names(judged: Stack) -> None:
    states = asyncio.run(read(judged.backends.bootstrap_servers, NODE_STATES))
    devices = {headers["ce_id"].decode(): json.loads(value)["uuid"] for value, headers in states}
    named = []
    for value, _ in asyncio.run(read(judged.backends.bootstrap_servers, DECISIONS)):
        record = json.loads(value)
        # Each node has a verdict for each of its devices, so that ``rows`` is left out.
        assert record.get("rows", []) == []
        for node, revision, rows in zip(
            *(record.get(name, []) for name in ("nodes", "revision", "devices")), strict=False
        ):
            named += devices[f"{record['cluster']}/{record['scheduler']}/{node}/state/{record['epoch']}/{revision}"][
                :rows
            ]
    assert len(named) == len(set(named)) == VERDICTS


def get_uid() -> str:
    identity: str = cluster.build_hopeless_pod()["metadata"]["uid"]
    return identity


async def read(servers: str, topic: Topic) -> list[tuple[bytes, dict[str, bytes]]]:
    """Read everything on the topic, with a consumer that knows nothing of ours."""
    records = []
    async with AIOKafkaConsumer(
        topic.name, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None
    ) as consumer:
        while batches := await consumer.getmany(timeout_ms=3000):
            records += [(record.value, dict(record.headers)) for batch in batches.values() for record in batch]
    return records


def test_a_verdict_takes_less_than_two_bytes_on_the_wire(judged: Stack) -> None:
    """The broker's log holds the batches as they were sent: keys, headers, framing and verdicts on nodes included."""
    # Folders of a deleted topic, which the broker keeps for a minute, end in "-delete".
    logs = Path(judged.backends.kafka[0].home).rglob(f"{DECISIONS.name}-*[0-9]/*.log")
    assert sum(log.stat().st_size for log in logs) / VERDICTS < 2


def test_a_page_of_the_answer_is_what_it_says(judged: Stack) -> None:
    page = judged.reader.get(build_schedulerlog_path(POD), node=LAST_NODE, detail="full")
    assert [node["name"] for node in page["filter"]["nodes"]] == [LAST_NODE]
    assert page["detail"]["judged_devices"] == VERDICTS


def test_the_devices_of_a_node_are_shown_with_what_was_in_use_of_them(judged: Stack) -> None:
    def count_devices() -> int:
        devices = judged.reader.get(build_schedulerlog_path(POD), node=LAST_NODE, detail="full")["devices"] or []
        return len({device["uuid"] for device in devices if device["uuid"] and device["memory_used_mib"] is not None})

    assert until(count_devices, cluster.DEVICES_PER_NODE) == cluster.DEVICES_PER_NODE
