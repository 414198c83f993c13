"""Lists of 10,000 waiting pods: the API's pages against OpenSearch's own search of one page of documents."""

import time
from datetime import UTC, datetime, timedelta

import httpx

from bench import load
from bench.backends import FOLDER
from bench.backlog import post_all
from bench.cpu import cpu_seconds
from bench.report import Figure, Result, against_first
from demo.processes import free_ports
from demo.stack import provisioned
from pipeline.index.documents import pod_state_document
from pipeline.sinks.bulk import Document
from schemas.documents.pod_states import state_after_attempt
from schemas.events import AttemptRepeated, Owner, PodDescription, PodRef
from schemas.ids import attempt_id
from schemas.indices import POD_STATES

PODS = 10_000
PAGE = 50
REQUESTS = 200
REASONS = ("CardInsufficientMemory", "NumaNotFit", "CardTypeMismatch", "NodeInsufficientDevice")


def pending() -> Result:
    """Half of the pods belong to jobs of 50, the others to nobody."""
    with provisioned(FOLDER / "pending") as (backends, processes):
        ports = free_ports("api")
        processes.start("api", "api", "serve", "--listen", ports["api"])
        processes.wait_ready("api", f"http://127.0.0.1:{ports['api']}/readyz")
        index_url, pid = backends.opensearch_url, processes.pid("api")
        _fill(index_url)
        api = f"http://127.0.0.1:{ports['api']}/api/v1"
        waiting = f"{api}/pods?state=waiting&limit={PAGE}"
        token = httpx.get(waiting, timeout=30).json()["continue"]
        raw = f"{index_url}/{POD_STATES.alias}/_search?size={PAGE}&sort=first_judged_at:asc&q=state:waiting"
        engine = backends.opensearch.pid
        figures = [
            _measured("OpenSearch, search of one page", raw, engine, None),
            _measured("pods that wait, first page", waiting, engine, pid),
            _measured("pods that wait, second page", f"{waiting}&continue={token}", engine, pid),
            _measured("workloads that wait, first page", f"{api}/pending?limit={PAGE}", engine, pid),
        ]
    return Result(
        "pending",
        "Pages of waiting pods and workloads against OpenSearch's own search of one page of the same documents",
        f"{PODS:,} waiting pods of {PODS // 100 + PODS // 2:,} workloads, {REQUESTS} requests one after the other, "
        f"{PAGE} items a page",
        against_first(figures, lambda first, this: this / first),
    )


def _fill(index_url: str) -> None:
    now = datetime.now(UTC)
    post_all(index_url, [_document(number, now) for number in range(PODS)])
    httpx.post(f"{index_url}/{POD_STATES.alias}-*/_refresh", timeout=30)


def _document(number: int, now: datetime) -> Document:
    started = now - timedelta(seconds=number % 600)
    owners = [Owner(kind="Job", name=f"train-{number // 50}")] if number < PODS // 2 else []
    uid = f"uid-{number}"
    state = state_after_attempt(
        AttemptRepeated.model_construct(
            cluster="default", attempt_id=attempt_id("default", "hami-scheduler", uid, started),
            pod=PodRef(namespace=f"team-{number % 20}", name=f"pod-{number}", uid=uid), scheduler="hami-scheduler",
            started_at=started, status="failed", reasons=[REASONS[number % 4]], attempts=number % 50 + 1,
            version=0, repeats="0", repeats_started_at=started, episode="0", episode_started_at=started, reports=[],
            offered_nodes=0, fit_nodes=0, judged_devices=0, text="",
            description=PodDescription(owners=owners, queue=f"queue-{number % 5}"),
            first_judged_at=now - timedelta(seconds=number),
        )
    )  # fmt: skip
    return pod_state_document(state, started, ())


def _measured(path: str, url: str, engine: int, api: int | None) -> Figure:
    load.run(url, REQUESTS, connections=1)  # the first requests pay for what is compiled or cached
    pids = [engine, *([api] if api else [])]
    before, began = [cpu_seconds(pid) for pid in pids], time.perf_counter()
    done = load.run(url, REQUESTS, connections=1)
    spent = [(cpu_seconds(pid) - was) / REQUESTS * 1000 for pid, was in zip(pids, before, strict=True)]
    cpu = f"CPU ms a request: OpenSearch {spent[0]:.1f}" + (f", API {spent[1]:.1f}" if api else "")
    note = f"p99 {done.milliseconds(99):.1f} ms; {cpu}; {done.requests / (time.perf_counter() - began):,.0f}/s"
    return Figure(path, done.milliseconds(50), "ms, p50", note=note)
