"""Messages of the topic as events of a real API server: a thousand retries are one event, whatever is killed."""

import asyncio
import contextlib
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from dev.embedded.control_plane import ControlPlane
from schemas.codec.records import encode
from schemas.events import MessagesEmitted, PodRef
from schemas.generate import ROOT
from schemas.json_types import Json
from schemas.topics import MESSAGES
from tests.support.backends import Addresses
from tests.support.control_plane.objects import create
from tests.support.control_plane.service_account import RBAC, a_kubeconfig
from tests.support.harness.forked import Forked
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually

REFUSED = "3 nodes CardInsufficientMemory(node1,node3,node4)"


@pytest.fixture
async def kafka(backends: Addresses) -> str:
    await provision_all(backends.bootstrap_servers)
    return backends.bootstrap_servers


@pytest.fixture
def pod(control_plane: ControlPlane, namespace: str) -> PodRef:
    container = {"name": "main", "image": "none"}
    body = {"metadata": {"name": "trainer"}, "spec": {"schedulerName": "nobody", "containers": [container]}}
    with control_plane.open_client() as client:
        created = create(client, f"/api/v1/namespaces/{namespace}/pods", body)
    return PodRef(namespace=namespace, name="trainer", uid=created["metadata"]["uid"])


@pytest.fixture
def documented_rights(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of a service account that may do what docs/kubernetes-events.md says, and no more."""
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/kubernetes-events.md").read_text(), re.DOTALL)
    account, name = f"/api/v1/namespaces/{namespace}/serviceaccounts", f"events-{namespace}"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    with control_plane.open_client() as client:
        create(client, account, {"metadata": {"name": name}})
        create(client, f"{RBAC}/clusterroles", yaml.safe_load(block) | {"metadata": {"name": name}})
        create(
            client, f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": ref}
        )
        token = create(client, f"{account}/{name}/token", {"spec": {}})
        (tmp_path / "token").write_text(token["status"]["token"])
        yield a_kubeconfig(tmp_path, control_plane)
        for kind in ("clusterrolebindings", "clusterroles"):
            client.delete(f"{RBAC}/{kind}/{name}")


def build_retries(pod: PodRef, count: int, first: int = 0, **fields: Any) -> list[MessagesEmitted]:
    """Build one message each of so many attempts, the latest a moment ago."""
    began = datetime.now(UTC) - timedelta(minutes=20)
    common = {"cluster": "default", "scheduler": "hami-scheduler", "severity": "Warning", "reason": "FilteringFailed"}
    return [
        MessagesEmitted.model_validate(
            common
            | {"pod": pod, "lines": [{"code": "CardInsufficientMemory", "message": REFUSED}]}
            | {"attempt_id": uuid.uuid5(uuid.NAMESPACE_URL, f"{pod}{number}").hex}
            | {"started_at": began + timedelta(seconds=number), "reported_at": began + timedelta(seconds=number)}
            | fields
        )
        for number in range(first, first + count)
    ]


async def send(kafka: str, messages: Sequence[MessagesEmitted]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka, enable_idempotence=True) as producer:
        for record in map(encode, messages):
            await producer.send(MESSAGES.name, record.value, key=record.key, headers=record.headers)
        await producer.flush()


async def count_unacknowledged(kafka: str, group: str) -> int:
    """Count the messages that the group has not acknowledged."""
    partitions = [TopicPartition(MESSAGES.name, number) for number in range(MESSAGES.partitions)]
    async with AIOKafkaConsumer(bootstrap_servers=kafka, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign(partitions)
        ends, starts = await consumer.end_offsets(partitions), await consumer.beginning_offsets(partitions)
        committed = {partition: await consumer.committed(partition) for partition in partitions}
    return sum(
        ends[partition] - (starts[partition] if committed[partition] is None else committed[partition])
        for partition in partitions
    )


async def wait_until_acknowledged(kafka: str, group: str, log: Path) -> None:
    for _ in range(150):
        if not await count_unacknowledged(kafka, group):
            return
        await asyncio.sleep(0.2)
    raise AssertionError(log.read_text()[-2_000:])  # noqa: ASYNC240 - the test is over


@contextlib.contextmanager
def writing(cluster: ControlPlane, kafka: str, group: str, log: Path, *flags: str) -> Iterator[Forked]:
    command = ["pipeline", "events", "--kafka", kafka, "--kubeconfig", str(cluster.kubeconfig)]
    command += ["--group", group, "--linger", "0.2", *flags]  # the last of a flag given twice counts
    with log.open("ab") as output:
        process = Forked(*command, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=120)


def list_written_events(client: httpx.Client, namespace: str) -> list[Json]:
    events = client.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events").json()["items"]
    return [event for event in events if event["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by")]


def count_notes(events: Sequence[Json]) -> dict[str, int]:
    return {event["note"]: event.get("series", {}).get("count", 1) for event in events}


async def test_a_thousand_retries_are_one_event_also_when_killed_and_read_again(
    control_plane: ControlPlane, kafka: str, namespace: str, pod: PodRef, tmp_path: Path
) -> None:
    group, log = f"events-{namespace}", tmp_path / "events.log"
    attempts = build_retries(pod, 1_000)
    with control_plane.open_client() as client:
        with writing(control_plane, kafka, group, log, "--kube-api-qps", "5", "--kube-api-burst", "1") as process:
            for start in range(0, 500, 50):
                await send(kafka, attempts[start : start + 50])
            eventually(lambda: list_written_events(client, namespace), log.read_text)
            process.kill()
            process.wait()
        await send(kafka, [*attempts[400:], *attempts[:50]])
        with writing(control_plane, kafka, group, log):
            await wait_until_acknowledged(kafka, group, log)
        assert count_notes(before := list_written_events(client, namespace)) == {REFUSED: 1_000}
        # Another group reads all of it a second time.
        with writing(control_plane, kafka, f"{group}-again", log):
            await wait_until_acknowledged(kafka, f"{group}-again", log)
        assert list_written_events(client, namespace) == before
    assert before[0]["eventTime"] == attempts[0].reported_at.isoformat().replace("+00:00", "Z")
    described = control_plane.run_kubectl("describe", "pod", "trainer", "-n", namespace)
    assert REFUSED in described
    assert "x1000 over" in described
    assert "hami-scheduler" in described


async def test_nothing_is_lost_while_the_api_server_is_down_and_what_it_refuses_delays_nothing(
    control_plane: ControlPlane, kafka: str, namespace: str, pod: PodRef, documented_rights: Path, tmp_path: Path
) -> None:
    group, log = f"events-{namespace}", tmp_path / "events.log"
    without_uid = PodRef(namespace=namespace, name="trainer")
    strangers = [
        *build_retries(PodRef(namespace=f"{namespace}-gone", name="trainer", uid="u"), 2),
        *build_retries(PodRef(namespace=namespace, name="never-there"), 2),
        *build_retries(PodRef(namespace=namespace, name="Bad_Name", uid="u"), 2),
    ]
    allowed = ["--kubeconfig", str(documented_rights)]
    with control_plane.open_client() as client, writing(control_plane, kafka, group, log, *allowed):
        await send(kafka, build_retries(pod, 3))
        eventually(lambda: count_notes(list_written_events(client, namespace)) == {REFUSED: 3}, log.read_text)
        control_plane.api_server.kill()
        await send(
            kafka,
            [*strangers, *build_retries(without_uid, 3, first=3, lines=[{"code": "", "message": "words " * 300}])],
        )
        await send(kafka, build_retries(pod, 3, first=3))
        # It has tried, and tries again: what it could not write is not acknowledged.
        eventually(lambda: "Nothing is lost: trying again" in log.read_text(), log.read_text)
        assert await count_unacknowledged(kafka, group) >= 3
        control_plane.api_server.start()
        await wait_until_acknowledged(kafka, group, log)
        counts = count_notes(list_written_events(client, namespace))
    assert counts.pop(REFUSED) == 6
    (cut,) = counts
    assert cut.endswith("words words... and 134 more words")
    assert len(cut.encode()) <= 1_024
    assert counts[cut] == 3


async def test_two_processes_that_share_the_partitions_count_together(
    control_plane: ControlPlane, kafka: str, namespace: str, tmp_path: Path
) -> None:
    group, logs = f"events-{namespace}", [tmp_path / "one.log", tmp_path / "two.log"]
    pods = [PodRef(namespace=namespace, name=f"pod-{number}", uid=f"uid-{number}") for number in range(8)]
    with control_plane.open_client() as client, writing(control_plane, kafka, group, logs[0]) as first:
        await send(kafka, [retry for pod in pods for retry in build_retries(pod, 20)])
        eventually(lambda: list_written_events(client, namespace), logs[0].read_text)
        with writing(control_plane, kafka, group, logs[1]):
            for start in range(20, 60, 10):
                await send(kafka, [retry for pod in pods for retry in build_retries(pod, 10, first=start)])
                await asyncio.sleep(0.5)
            first.kill()
            first.wait()
            # A broker needs a session's time to see that the first is gone.
            eventually(
                lambda: (
                    sorted(event.get("series", {}).get("count") for event in list_written_events(client, namespace))
                    == [60] * 8
                ),
                lambda: (
                    f"{[event.get('series') for event in list_written_events(client, namespace)]} {logs[1].read_text()}"
                ),
            )
