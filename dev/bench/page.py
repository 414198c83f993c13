"""The page of a pod that 5,000 nodes refused, and that of the nodes: server time, bytes, and when a browser paints."""

import statistics
import subprocess
import time
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from dev.bench import cluster, load
from dev.bench.backends import FOLDER, send
from dev.bench.backlog import post_all
from dev.bench.cpu import read_cpu_seconds
from dev.bench.held_devices import iterate_placement_documents
from dev.bench.report import Figure, Result
from dev.bench.services import start_both, start_placements
from dev.demo.processes import find_free_ports
from dev.demo.stack import provisioned
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.event_builder import Circumstances
from engine.hami.node_events import to_node_registered
from runtime.settings.names import DEFAULT_CLUSTER
from schemas.codec.records import EncodedRecord, encode
from schemas.indices import OCCUPANCY
from schemas.topics import DECISIONS, NODE_STATES, NODES

SIZES: Final = (10, 5_000)
_POOLS: Final = ",".join(f"pool-{digit}=gpu-node-*{digit}" for digit in range(10))
"""Ten pools, by the last digits of the nodes' names, so that each page has nodes of all of them."""
REQUESTS: Final = 100
VISITS: Final = 7
UNSEEN: Final = range(len(SIZES), len(SIZES) + 7)
"""Pods at 5,000 nodes whose page is asked for once: nothing of them is remembered."""
_WITHOUT_ANNOTATIONS: Final = Circumstances(constraints={})
"""Circumstances as schedulers report them: only then a diagnosis looks for the constraints that exclude every node."""
_PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
_OPENED: Final = """async () => {
  const began = performance.now();
  document.querySelector(".node-map [data-group]").dispatchEvent(new MouseEvent("click", { bubbles: true }));
  while (!document.querySelector("details.group ul.names li")) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""
"""From a click on the map to the names of that group, in milliseconds."""


class _Visit(NamedTuple):
    painted_ms: float
    opened_ms: float | None
    """Time to open a group; None if the page draws devices one by one, and no map of all nodes."""
    wire_bytes: float
    """Bytes of the page with its files and the parts that it fetches later."""


def measure_page() -> Result:
    """Measure the page of the same pod at 10 and at 5,000 nodes, and the API's answer from which the page is made."""
    with provisioned(FOLDER / "page") as (backends, processes):
        ports = find_free_ports("api")
        start_both(processes)
        start_placements(processes)
        origin = f"http://127.0.0.1:{ports['api']}"
        processes.start("api", "api", "serve", "--listen", ports["api"], SCHEDULERLOG_NODE_POOLS=_POOLS)
        processes.wait_ready("api", f"{origin}/readyz")
        for number, nodes in enumerate(SIZES):
            columns = cluster.build_columns(nodes)
            send(backends.bootstrap_servers, NODE_STATES.name, cluster.encode_states(columns))
            send(
                backends.bootstrap_servers,
                DECISIONS.name,
                cluster.encode_attempt(columns, number, _WITHOUT_ANNOTATIONS),
            )
        pods = [f"llm/hopeless-{number}" for number in range(len(SIZES))]
        for pod in pods:
            _wait_for(f"{origin}/ui/pods/{pod}")
        for number in UNSEEN:
            send(
                backends.bootstrap_servers,
                DECISIONS.name,
                cluster.encode_attempt(columns, number, _WITHOUT_ANNOTATIONS),
            )
        pid = processes.get_pid("api")
        diagnosis = f"{origin}/api/v1/namespaces/{pods[-1].replace('/', '/pods/')}/diagnosis"
        figures = [_measure_server(f"diagnosis as JSON, {SIZES[-1]:,} nodes", diagnosis, pid)]
        figures += [
            _measure_server(f"page, {nodes:,} nodes", f"{origin}/ui/pods/{pod}", pid)
            for nodes, pod in zip(SIZES, pods, strict=True)
        ]
        figures.append(_measure_first_answers(origin))
        send(backends.bootstrap_servers, NODES.name, _encode_registrations(columns))
        _await_nodes(origin)
        figures += _measure_fleet(origin, pid)
        post_all(backends.opensearch_url, list(iterate_placement_documents(SIZES[-1])))
        httpx.post(f"{backends.opensearch_url}/{OCCUPANCY.alias}-*/_refresh", timeout=60).raise_for_status()
        figures += _measure_fleet(origin, pid)
        figures += _measure_browser({nodes: f"{origin}/ui/pods/{pod}" for nodes, pod in zip(SIZES, pods, strict=True)})
    return Result(
        "page",
        "The page of a pod against the API's own answer, and what a browser does with it. Goals at 5,000 nodes: 100 ms "
        "on the server, first paint within 1,000 ms, 300 kB on the wire; of the nodes 150 ms and 150 kB",
        f"a pod that nodes x {cluster.DEVICES_PER_NODE} refused; {REQUESTS} requests one after the other, median of "
        f"{VISITS} visits with an empty cache",
        tuple(figures),
    )


def _wait_for(url: str) -> None:
    for _ in range(600):
        if httpx.get(url, timeout=30).status_code == httpx.codes.OK:
            return
        time.sleep(0.2)
    raise RuntimeError(f"{url} does not answer after two minutes")


def _encode_registrations(columns: ClusterColumns) -> list[EncodedRecord]:
    now = datetime.now(UTC)
    return [
        encode(to_node_registered(DEFAULT_CLUSTER, name, now, columns.get_registration(name)))
        for name in columns.node_names
    ]


def _await_nodes(origin: str) -> None:
    for _ in range(600):
        answer = httpx.get(f"{origin}/api/v1/nodes", params={"limit": 1}, timeout=30)
        # The index may refuse a search while 5,000 registrations reach it.
        if answer.is_success and answer.json()["total"] == SIZES[-1]:
            return
        time.sleep(0.2)
    raise RuntimeError(f"{SIZES[-1]} nodes are not listed after two minutes: {answer.text[:200]}")


def _measure_fleet(origin: str, pid: int) -> list[Figure]:
    """Measure the page of the nodes, which draws each device of those it lists, next to the same nodes as JSON."""
    nodes = f"{origin}/api/v1/nodes"
    items = httpx.get(nodes, timeout=30).json()["items"]
    note = f"{len(items)} of {SIZES[-1]:,} nodes, {sum(item['pods'] for item in items)} pods on them"
    return [
        _measure_server(f"{note}, as JSON", nodes, pid),
        _measure_server(f"page of {note}", f"{origin}/ui/nodes", pid),
        _measure_server(f"page of {note}, by pool", f"{origin}/ui/nodes?by=pool", pid),
    ]


def _measure_first_answers(origin: str) -> Figure:
    seconds = []
    for number in UNSEEN:
        _wait_for(f"{origin}/api/v1/namespaces/llm/pods/hopeless-{number}/schedulerlog")
        seconds.append(httpx.get(f"{origin}/ui/pods/llm/hopeless-{number}", timeout=30).elapsed.total_seconds())
    note = f"of {len(UNSEEN)} pods, longest {max(seconds) * 1000:.1f} ms"
    return Figure(f"page for the first time, {SIZES[-1]:,} nodes", statistics.median(seconds) * 1000, "ms", note=note)


def _measure_server(path: str, url: str, pid: int) -> Figure:
    load.run(url, REQUESTS // 4, connections=1)  # the first requests pay for what is compiled or cached
    before = read_cpu_seconds(pid)
    done = load.run(url, REQUESTS, connections=1)
    cpu = (read_cpu_seconds(pid) - before) / REQUESTS * 1000
    size = len(httpx.get(url, timeout=30).content)
    note = f"p99 {done.compute_milliseconds(99):.1f} ms, CPU {cpu:.1f} ms, {size:,} bytes"
    return Figure(path, done.compute_milliseconds(50), "ms, p50", note=note)


def _measure_browser(addresses: dict[int, str]) -> list[Figure]:
    """Measure the visits of a browser; no figure without Chromium."""
    chromium = subprocess.run([".ci/chromium"], capture_output=True, text=True)
    if chromium.returncode:
        return [Figure("browser", 0, "", note=chromium.stderr.strip())]
    with sync_playwright() as playwright:
        executable = chromium.stdout.split("\n")[0]
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            return [figure for nodes, url in addresses.items() for figure in _measure_visits(browser, nodes, url)]
        finally:
            browser.close()


def _measure_visits(browser: Browser, nodes: int, url: str) -> list[Figure]:
    visits = [_visit(browser, url) for _ in range(VISITS + 1)][1:]  # the first starts Chromium's own processes
    opened = [visit.opened_ms for visit in visits if visit.opened_ms is not None]
    figures = [
        Figure(f"first paint, {nodes:,} nodes", statistics.median(visit.painted_ms for visit in visits), "ms"),
        Figure(f"on the wire, {nodes:,} nodes", max(visit.wire_bytes for visit in visits) / 1000, "kB"),
    ]
    if opened:
        figures.append(Figure(f"a group opened from the map, {nodes:,} nodes", statistics.median(opened), "ms"))
    return figures


def _visit(browser: Browser, url: str) -> _Visit:
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        received = _collect_received(page)
        page.goto(url)
        page.wait_for_load_state("networkidle")
        painted, wire_bytes = float(page.evaluate(_PAINTED)), sum(received)
        opened = float(page.evaluate(_OPENED)) if page.locator(".node-map").count() else None
        return _Visit(painted, opened, wire_bytes)


def _collect_received(page: Page) -> list[float]:
    """Collect the encoded bytes of each answer in a list that grows."""
    received: list[float] = []

    def note_finished(event: dict[str, Any]) -> None:
        received.append(event["encodedDataLength"])

    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.loadingFinished", note_finished)
    return received
