"""The API against a bare handler of the same bytes, and against OpenSearch's own GET of the document."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

import httpx

from dev.bench import cluster, load
from dev.bench.backends import FOLDER, send, start_bare
from dev.bench.cpu import apart, read_cpu_seconds
from dev.bench.report import Figure, Result, add_ratios
from dev.bench.services import start_both
from dev.demo.processes import Processes, find_free_ports
from dev.demo.reader import build_schedulerlog_path
from dev.demo.stack import provisioned
from schemas.topics import DECISIONS

NODES: Final = 10
REQUESTS: Final = 12_000
ROUNDS: Final = 4
CONNECTIONS: Final = 8
_API, _INDEX = "the API, from its memory", "OpenSearch, GET by id"
_REPLICAS: Final = "two replicas of the API"


@dataclass(slots=True)
class _Server:
    path: str
    url: str
    pid: int
    headers: Mapping[str, str] = field(default_factory=dict)
    replicas: Mapping[str, int] = field(default_factory=dict)
    """By URL, the process ids of others that are asked in turns with it."""
    cpu_ms: list[float] = field(default_factory=list)
    loads: list[load.Load] = field(default_factory=list)

    def measure(self) -> None:
        # The first requests pay for what is compiled or cached.
        load.run(self.url, REQUESTS // 4, CONNECTIONS, self.headers, tuple(self.replicas))
        before = self._sum_cpu_seconds()
        done = load.run(self.url, REQUESTS, CONNECTIONS, self.headers, tuple(self.replicas))
        self.cpu_ms.append((self._sum_cpu_seconds() - before) / done.requests * 1000)
        self.loads.append(done)

    def _sum_cpu_seconds(self) -> float:
        return sum(map(read_cpu_seconds, (self.pid, *self.replicas.values())))

    @property
    def best(self) -> load.Load:
        return max(self.loads, key=lambda done: done.rate)

    def build_figure(self) -> Figure:
        """Build the figure of the best round: the work of other processes is no cost of the server."""
        best = self.best
        p50, p99 = best.compute_milliseconds(50), best.compute_milliseconds(99)
        note = f"{best.rate:,.0f}/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms; the client took {best.busy:.0%} of a core"
        return Figure(self.path, min(self.cpu_ms), "CPU ms per request", note=note)


def measure_api() -> Result:
    """Measure the CPU of the servers and their requests/s, with a client that takes less CPU than they do."""
    with provisioned(FOLDER / "api") as (backends, processes):
        ports = find_free_ports("api", "replica", "checking", "reviews", "bare", "asgi")
        start_both(processes)
        for name in ("api", "replica", "checking"):
            checking = _start_checking(processes, ports["reviews"]) if name == "checking" else {}
            processes.start(name, "api", "serve", "--listen", ports[name], **checking)
            processes.wait_ready(name, f"http://127.0.0.1:{ports[name]}/readyz")
        send(backends.bootstrap_servers, DECISIONS.name, chain(*cluster.iterate_attempts(NODES, 1)))
        urls = {name: f"http://127.0.0.1:{ports[name]}{build_schedulerlog_path('llm/hopeless-0')}" for name in ports}
        token = {"Authorization": f"Bearer {_create_token()}"}
        # The bare handlers serve the very bytes of this answer, so that only the making of them differs.
        body = _await_answer(urls["api"])
        _await_answer(urls["replica"])
        _await_answer(urls["checking"], token)
        start_bare(processes, ports["bare"], body)
        start_bare(processes, ports["asgi"], body, "asgi", "asgi")
        document = _await_document_url(backends.opensearch_url)
        servers = [
            _Server("bare handler of the same bytes", urls["bare"], processes.get_pid("bare")),
            _Server("the same without Starlette", urls["asgi"], processes.get_pid("asgi")),
            _Server(_API, urls["api"], processes.get_pid("api")),
            _Server("with authentication remembered", urls["checking"], processes.get_pid("checking"), token),
            _Server(_INDEX, document, backends.opensearch.pid),
        ]
        # In turns, so that other work on the machine costs all as much.
        for _ in range(ROUNDS):
            for server in servers:
                server.measure()
        # Each with as much as the others: a process of Python has one event loop, and OpenSearch threads for all cores.
        bound = [_Server(f"{server.path}, on one core", server.url, server.pid, server.headers) for server in servers]
        # As many event loops as OpenSearch has cores: what a Deployment of two replicas has.
        replicas = _Server(
            _REPLICAS, urls["api"], processes.get_pid("api"), {}, {urls["replica"]: processes.get_pid("replica")}
        )
        index = _Server(_INDEX, document, backends.opensearch.pid)
        for _ in range(ROUNDS):
            replicas.measure()
            index.measure()
        for _ in range(ROUNDS):
            for server in bound:
                with apart(server.pid, {other.pid for other in bound} - {server.pid}):
                    server.measure()
    return Result(
        "api",
        "GET schedulerlog against a bare handler of the same bytes and against OpenSearch's GET of the document",
        f"{REQUESTS:,} requests over {CONNECTIONS} connections each, the best of {ROUNDS} rounds in turns, "
        f"{len(body):,} bytes an answer, {NODES} nodes",
        (
            *_list_figures(servers),
            *_list_figures(bound),
            *_list_figures([replicas, index]),
            _compare_with_index(servers, _API, "one process each: OpenSearch uses every core"),
            _compare_with_index([replicas, index], _REPLICAS, "both use every core"),
            _compare_with_index(bound, _API, "each server on one core, the client on another"),
        ),
    )


def _list_figures(servers: Sequence[_Server]) -> tuple[Figure, ...]:
    return add_ratios([server.build_figure() for server in servers], lambda first, this: this / first)


def _compare_with_index(servers: Sequence[_Server], api: str, how: str) -> Figure:
    rates = {server.path.removesuffix(", on one core"): server.best.rate for server in servers}
    return Figure("requests/s of the API over those of OpenSearch", rates[api] / rates[_INDEX], "times", note=how)


def _start_checking(processes: Processes, port: str) -> dict[str, str]:
    """Start a server on ``port`` that identifies callers, and build the settings of an API that asks it."""
    processes.start("reviews", "dev.bench.reviews", port)
    cluster_entry = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster_entry],
        "users": [{"name": "u", "user": {"token": "api"}}],
        "contexts": [context],
        "current-context": "c",
    }
    # JSON is YAML.
    kubeconfig = Path(FOLDER / "kubeconfig")
    kubeconfig.write_text(json.dumps(config))
    return {"SCHEDULERLOG_API_AUTHENTICATION": "kubernetes", "SCHEDULERLOG_KUBECONFIG": str(kubeconfig.resolve())}


def _create_token() -> str:
    """Create a token in the form and length of a service account's, which ``dev.bench.reviews`` accepts."""
    claims = {"aud": ["schedulerlog"], "exp": int(time.time()) + 3600, "sub": "system:serviceaccount:llm:reader"}
    parts = (json.dumps(part).encode() for part in ({"alg": "RS256", "kid": "k" * 43}, claims | {"jti": "j" * 300}))
    return ".".join((*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "s" * 342))


def _await_answer(url: str, headers: Mapping[str, str] | None = None) -> bytes:
    for _ in range(300):
        answer = httpx.get(url, headers=headers, timeout=10)
        if answer.status_code == httpx.codes.OK:
            return answer.content
        time.sleep(0.1)
    raise RuntimeError(f"{url} still answers {answer.status_code} after 30 s")


def _await_document_url(index_url: str) -> str:
    # Memory answers an attempt before the index writer has written it.
    for _ in range(300):
        httpx.post(f"{index_url}/schedulerlog-attempts*/_refresh", timeout=30)
        hits = httpx.get(f"{index_url}/schedulerlog-attempts*/_search", timeout=30).json()["hits"]["hits"]
        if hits:
            return f"{index_url}/{hits[0]['_index']}/_doc/{hits[0]['_id']}"
        time.sleep(0.1)
    raise RuntimeError("the index has no attempt after 30 s")
