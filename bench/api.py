"""The API against a bare handler of the same bytes, and against OpenSearch's own GET of the document."""

import time
from itertools import chain

import httpx

from bench import cluster, load
from bench.backends import FOLDER, send, start_bare
from bench.cpu import cpu_seconds
from bench.report import Figure, Result, against_first
from bench.services import start_both
from demo.processes import free_ports
from demo.reader import schedulerlog_path
from demo.stack import provisioned
from schemas.topics import DECISIONS

NODES = 10
REQUESTS = 4_000


def api() -> Result:
    """Compares server CPU per request, which does not depend on how much of the two cores the client uses."""
    with provisioned(FOLDER / "api") as (backends, processes):
        ports = free_ports("api", "bare")
        start_both(processes)
        processes.start("api", "api", "serve", "--listen", ports["api"])
        processes.wait_ready("api", f"http://127.0.0.1:{ports['api']}/readyz")
        send(backends.bootstrap_servers, DECISIONS.name, chain(*cluster.attempts(NODES, 1)))
        # The bare handler serves the very bytes of this answer, so that only the making of them differs.
        url = f"http://127.0.0.1:{ports['api']}{schedulerlog_path('llm/hopeless-0')}"
        body = _when_there(url)
        start_bare(processes, ports["bare"], body)
        bare_url = f"http://127.0.0.1:{ports['bare']}/"
        document = _document_url(backends.opensearch_url)
        figures = [
            _measure("bare handler of the same bytes", bare_url, processes.pid("bare")),
            _measure("the API, from its memory", url, processes.pid("api")),
            _measure("OpenSearch, GET by id", document, backends.opensearch.pid),
        ]
    return Result(
        "api",
        "GET schedulerlog against a bare handler of the same bytes and against OpenSearch's GET of the document",
        f"{REQUESTS} requests over 8 connections each, {len(body):,} bytes an answer, {NODES} nodes",
        against_first(figures, lambda first, this: this / first),
    )


def _when_there(url: str) -> bytes:
    for _ in range(300):
        answer = httpx.get(url, timeout=10)
        if answer.status_code == httpx.codes.OK:
            return answer.content
        time.sleep(0.1)
    raise RuntimeError(f"{url} still answers {answer.status_code} after 30 s")


def _document_url(index_url: str) -> str:
    # Memory answers an attempt before the index writer has written it.
    for _ in range(300):
        httpx.post(f"{index_url}/schedulerlog-attempts*/_refresh", timeout=30)
        hits = httpx.get(f"{index_url}/schedulerlog-attempts*/_search", timeout=30).json()["hits"]["hits"]
        if hits:
            return f"{index_url}/{hits[0]['_index']}/_doc/{hits[0]['_id']}"
        time.sleep(0.1)
    raise RuntimeError("the index has no attempt after 30 s")


def _measure(path: str, url: str, pid: int) -> Figure:
    load.run(url, REQUESTS // 4)  # the first requests pay for what is compiled or cached
    # CPU of the server alone: the client shares its two cores, so requests per second would measure both.
    before = cpu_seconds(pid)
    done = load.run(url, REQUESTS)
    cost = (cpu_seconds(pid) - before) / done.requests * 1000
    note = (
        f"{done.requests / done.seconds:,.0f}/s, p50 {done.milliseconds(50):.2f} ms, p99 {done.milliseconds(99):.2f} ms"
    )
    return Figure(path, cost, "CPU ms per request", note=note)
