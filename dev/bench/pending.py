"""Lists of 10,000 waiting pods: the API's pages against OpenSearch's own search of one page of documents."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import httpx
from aiokafka import AIOKafkaProducer

from dev.bench import load
from dev.bench.backends import FOLDER
from dev.bench.backlog import post_all
from dev.bench.cpu import read_cpu_seconds
from dev.bench.report import Figure, Result, add_ratios
from dev.demo.processes import find_free_ports
from dev.demo.stack import provisioned
from pipeline.index.documents import make_pod_state_document
from pipeline.sinks.bulk import Document
from schemas.codec.records import encode
from schemas.documents.pod_states import derive_state_after_attempt
from schemas.events import (
    AttemptRepeated,
    DeviceKind,
    NodeStateChanged,
    Owner,
    PodDescription,
    PodRef,
    PodWait,
    Request,
)
from schemas.ids import derive_attempt_id
from schemas.indices import POD_STATES
from schemas.topics import NODE_STATES as STATES_TOPIC

PODS = 10_000
PAGE = 50
REQUESTS = 200
NODES = 1_000
DEVICES = 8
REASONS = ("CardInsufficientMemory", "NumaNotFit", "CardTypeMismatch", "NodeInsufficientDevice")


def measure_pending() -> Result:
    """Measure lists of pods: half of them belong to jobs of 50, the others to nobody."""
    with provisioned(FOLDER / "pending") as (backends, processes):
        ports = find_free_ports("api")
        processes.start("api", "api", "serve", "--listen", ports["api"])
        processes.wait_ready("api", f"http://127.0.0.1:{ports['api']}/readyz")
        index_url, pid = backends.opensearch_url, processes.get_pid("api")
        asyncio.run(_publish_states(backends.bootstrap_servers))
        _fill(index_url)
        api = f"http://127.0.0.1:{ports['api']}/api/v1"
        pods = f"{api}/pending?group_by=pod&limit={PAGE}"
        first = httpx.get(pods, timeout=30).json()
        assert first["items"][0]["nearest"]["missing_memory_mib"] is not None, "the devices are not known yet"
        token = first["continue"]
        raw = f"{index_url}/{POD_STATES.alias}/_search?size={PAGE}&sort=first_judged_at:asc&q=state:waiting"
        engine = backends.opensearch.pid
        figures = [
            _measure("OpenSearch, search of one page", raw, engine, None),
            _measure("pods, first page", pods, engine, pid),
            _measure("pods, second page", f"{pods}&continue={token}", engine, pid),
            _measure("pods, most GPU-hours first", f"{pods}&sort=gpu_hours", engine, pid),
            _measure("pods, first page as CSV", f"{pods}&format=csv", engine, pid),
            _measure("obstacles, first page", f"{api}/pending?group_by=obstacle&limit={PAGE}", engine, pid),
            _measure("workloads, first page", f"{api}/pending?limit={PAGE}", engine, pid),
            _measure("pods of a team, first page", f"{pods}&namespace=team-7", engine, pid),
            _measure("report: what all teams hold and wait for", f"{api}/reports/failures?since=24h", engine, pid),
        ]
    return Result(
        "pending",
        "Pages of waiting pods and workloads against OpenSearch's own search of one page of the same documents",
        f"{PODS:,} waiting pods of {PODS // 100 + PODS // 2:,} workloads with {len(REASONS) * 8} obstacles, "
        f"{NODES:,} nodes x {DEVICES}, {REQUESTS} requests one after the other, {PAGE} items a page",
        add_ratios(figures, lambda first, this: this / first),
    )


def _fill(index_url: str) -> None:
    now = datetime.now(UTC)
    post_all(index_url, [_build_document(number, now) for number in range(PODS)])
    httpx.post(f"{index_url}/{POD_STATES.alias}-*/_refresh", timeout=30)


def _build_document(number: int, now: datetime) -> Document:
    started = now - timedelta(seconds=number % 600)
    owners = [Owner(kind="Job", name=f"train-{number // 50}")] if number < PODS // 2 else []
    uid = f"uid-{number}"
    state = derive_state_after_attempt(
        AttemptRepeated.model_construct(
            cluster="default", attempt_id=derive_attempt_id("default", "hami-scheduler", uid, started),
            pod=PodRef(namespace=f"team-{number % 20}", name=f"pod-{number}", uid=uid), scheduler="hami-scheduler",
            started_at=started, status="failed", reasons=[REASONS[number % 4]], attempts=number % 50 + 1,
            version=0, repeats="0", repeats_started_at=started, episode="0", episode_started_at=started, reports=[],
            wait=_build_wait(number), offered_nodes=0, fit_nodes=0, judged_devices=0, text="",
            description=PodDescription(owners=owners, queue=f"queue-{number % 5}"),
            first_judged_at=now - timedelta(seconds=number),
        )
    )  # fmt: skip
    return make_pod_state_document(state, started, ())


def _build_wait(number: int) -> PodWait:
    """Build the wait of a pod: eight different requests, near to eight nodes each."""
    count, code = number // 4 % 8 + 1, REASONS[number % 4]
    sentence = f"1,000 of 1,000 nodes lack memory: 40,000 MiB asked on each of {count} devices."
    return PodWait(
        code=code, sentence_en=sentence, sentence_zh=sentence, devices=count, models=["NVIDIA A100-SXM4-80GB"],
        pools=["a100"], nearest_nodes=[f"node{(number * 8 + neighbour) % NODES:04}" for neighbour in range(8)],
        reasons={code: DEVICES}, missing_devices=count,
        asked=Request(container="main", vendor="NVIDIA", count=count, memory_mib=40_000),
    )  # fmt: skip


async def _publish_states(servers: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(NODES):
            record = encode(_build_state(f"node{number:04}", number))
            await producer.send(STATES_TOPIC.name, record.value, key=record.key, headers=record.headers)
    # The API looks for new states every second.
    await asyncio.sleep(5)


def _build_state(node: str, number: int) -> NodeStateChanged:
    kind = DeviceKind(
        model="NVIDIA A100-SXM4-80GB", vendor="NVIDIA", mode="hami-core", memory_mib=81_920, cores_percent=100, slots=10
    )
    return NodeStateChanged(
        cluster="default", scheduler="hami-scheduler", node=node, epoch=1, revision=1, observed_at=datetime.now(UTC),
        kinds=[kind], uuid=[f"GPU-{node}-{device}" for device in range(DEVICES)], kind=[0] * DEVICES,
        index=list(range(DEVICES)), numa=[0] * DEVICES, healthy=[True] * DEVICES, cordoned=[False] * DEVICES,
        memory_used_mib=[60_000 + (number * device) % 20_000 for device in range(DEVICES)],
        cores_used_percent=[50] * DEVICES, slots_used=[2] * DEVICES,
    )  # fmt: skip


def _measure(path: str, url: str, engine: int, api: int | None) -> Figure:
    load.run(url, REQUESTS, connections=1)  # the first requests pay for what is compiled or cached
    pids = [engine, *([api] if api else [])]
    before, began = [read_cpu_seconds(pid) for pid in pids], time.perf_counter()
    done = load.run(url, REQUESTS, connections=1)
    spent = [(read_cpu_seconds(pid) - was) / REQUESTS * 1000 for pid, was in zip(pids, before, strict=True)]
    cpu = f"CPU ms a request: OpenSearch {spent[0]:.1f}" + (f", API {spent[1]:.1f}" if api else "")
    note = f"p99 {done.compute_milliseconds(99):.1f} ms; {cpu}; {done.requests / (time.perf_counter() - began):,.0f}/s"
    return Figure(path, done.compute_milliseconds(50), "ms, p50", note=note)
