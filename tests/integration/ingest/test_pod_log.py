"""A container's log over HTTP from a server that cuts, restarts and repeats, as kubelets do behind the API server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from ingest.commands.from_cluster import list_nodes
from ingest.lines.framing import read_time
from ingest.readers.hami.devices import parse_node_list
from ingest.sources import pod_choice, pod_log
from ingest.sources.pod_choice import follow_chosen
from ingest.sources.pod_log import PodContainer, Since, follow_pod
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials
from runtime.kubernetes.errors import KubeApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CONTAINER = PodContainer("kube-system", "hami-scheduler-0", "extender")


@dataclass
class Kubelet:
    """Keeps two runs of a container. It gives lines since a whole second, and can cut a connection."""

    current: list[str] = field(default_factory=list)
    previous: list[str] = field(default_factory=list)
    cut_after_bytes: list[int] = field(default_factory=list)
    """Bytes of each connection in turn; an unlisted one stays open and gives everything."""
    refusals: int = 0
    """Number of refusals that are left."""
    next_run: list[str] = field(default_factory=list)
    """Lines of the container after its restart, at the next cut."""

    async def log(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        if self.refusals:
            self.refusals -= 1
            return web.json_response({"message": "pods is forbidden"}, status=403)
        if query.get("previous") == "true":
            if not self.previous:
                return web.json_response({"message": "previous terminated container not found"}, status=400)
            return web.Response(text="".join(self._select_lines(self.previous, query)))
        response = web.StreamResponse()
        await response.prepare(request)
        if self.cut_after_bytes:
            text = "".join(self._select_lines(self.current, query)).encode()
            await response.write(text[: self.cut_after_bytes.pop(0)])
            if self.next_run:
                await asyncio.sleep(0.2)  # what is cut off unread would be asked for as if nothing had been read
                self.previous, self.current, self.next_run = self.current, self.next_run, []
            if request.transport:
                request.transport.close()
            return response
        sent = 0
        while True:
            lines = self._select_lines(self.current, query)
            await response.write("".join(lines[sent:]).encode())
            sent = len(lines)
            await asyncio.sleep(0.02)

    def _select_lines(self, lines: list[str], query: dict[str, str]) -> list[str]:
        since = read_time(query.get("sinceTime", "").encode())
        return [line for line in lines if since is None or (read_time(line.split(" ")[0].encode()) or since) >= since]


@asynccontextmanager
async def served(routes: dict[str, Handler]) -> AsyncIterator[str]:
    app = web.Application()
    for path, handler in routes.items():
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    async def load() -> Configuration:
        return Configuration(host=url)

    client = Client(await ApiCredentials.open(load))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def client_of(kubelet: Kubelet) -> AsyncIterator[Client]:
    async with served({CONTAINER.path: kubelet.log}) as url, connected(url) as client:
        yield client


def stamp(number: int, text: str = "") -> str:
    """Stamp a line: three lines to each nanosecond, a thousand nanoseconds apart."""
    return f"2026-11-21T03:06:{number // 30:02d}.{number // 3 % 10:09d}Z {text or f'line {number}'}\n"


async def read(client: Client, count: int, since: Since | None = None) -> tuple[list[bytes], Since]:
    texts: list[bytes] = []
    reached = since or Since()
    async with asyncio.timeout(20):
        async for lines, reached in follow_pod(client, CONTAINER, since or Since()):
            texts += lines.texts
            if len(texts) >= count:
                return texts, reached
    raise AssertionError("the log ended")


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_log, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(pod_log, "LONGEST_PAUSE", 0.02)


def make_lines(*numbers: int) -> list[bytes]:
    return [f"line {number}".encode() for number in numbers]


async def test_every_line_is_read_once_however_often_the_connection_is_cut() -> None:
    kubelet = Kubelet([stamp(number) for number in range(200)], cut_after_bytes=[1000, 33, 0, 2500, 4001, 40])
    async with client_of(kubelet) as client:
        texts, _ = await read(client, 200)
    assert texts == make_lines(*range(200))


async def test_a_restart_of_the_reader_continues_behind_the_last_line() -> None:
    kubelet = Kubelet([stamp(number) for number in range(50)])
    async with client_of(kubelet) as client:
        first, reached = await read(client, 50)
        kubelet.current += [stamp(number) for number in range(50, 60)]
        second, _ = await read(client, 10, Since.parse(str(reached)))
    assert first + second == make_lines(*range(60))


async def test_what_a_container_wrote_before_its_restart_is_not_lost() -> None:
    kubelet = Kubelet([stamp(number) for number in range(20)], cut_after_bytes=[len(stamp(0)) * 10])
    kubelet.next_run = [stamp(number) for number in range(30, 40)]
    async with client_of(kubelet) as client:
        texts, _ = await read(client, 30)
    assert texts == make_lines(*range(20), *range(30, 40))


async def test_a_clock_that_goes_back_costs_no_line_and_repeats_none() -> None:
    stamps = [30, 31, 32, 36, 33, 34, 34, 37, 35, 36, 38]
    written = [f"2026-11-21T03:06:{second}.{number:03d}Z line {number}\n" for number, second in enumerate(stamps)]
    for cut in range(1, len(stamps)):
        kubelet = Kubelet(list(written), cut_after_bytes=[len(written[0]) * cut])
        async with client_of(kubelet) as client:
            texts, _ = await read(client, len(stamps))
        assert texts == make_lines(*range(len(stamps)))


async def test_a_restart_in_the_middle_of_a_value_of_several_lines_reads_it_whole() -> None:
    value = ["err=<", "\tone", " >"]
    kubelet = Kubelet([stamp(0), *(stamp(3 * position, text) for position, text in enumerate(value[:2], 1))])
    async with client_of(kubelet) as client:
        first, reached = await read(client, 1)
        kubelet.current.append(stamp(9, value[2]))
        second, _ = await read(client, 1, Since.parse(str(reached)))
    assert first + second == [b"line 0", b'err="one"']


async def test_a_line_that_the_kubelet_itself_says_is_passed_on() -> None:
    kubelet = Kubelet([stamp(0), "failed to create fsnotify watcher: too many open files\n"])
    async with client_of(kubelet) as client:
        texts, _ = await read(client, 2)
    assert texts == [b"line 0", b"failed to create fsnotify watcher: too many open files"]


async def test_a_pod_that_does_not_exist_ends_the_reading() -> None:
    async with client_of(Kubelet()) as client:
        with pytest.raises(KubeApiError, match="kube-system/nobody: "):
            async for _ in follow_pod(client, PodContainer("kube-system", "nobody"), Since()):
                pass


async def test_a_refusal_of_what_was_allowed_before_is_waited_out_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kubelet = Kubelet([stamp(0)], cut_after_bytes=[len(stamp(0)), 2 * len(stamp(0))])
    async with client_of(kubelet) as client:
        follow = follow_pod(client, CONTAINER, Since())
        await anext(follow)
        kubelet.refusals = 3
        kubelet.current.append(stamp(3))
        assert (await anext(follow))[0].texts == make_lines(3)
        assert caplog.text.count("forbidden") == 1
        monkeypatch.setattr(pod_log, "REFUSED_SECONDS", 0.1)
        kubelet.refusals = 1000
        with pytest.raises(KubeApiError, match="forbidden"):
            await anext(follow)


@pytest.mark.parametrize("text", ["", "yesterday 3", "2026-11-21T03:06:23Z", "2026-11-21T03:06:23Z x"])
def test_what_is_not_a_place_in_a_log_is_its_start(text: str) -> None:
    assert Since.parse(text) == Since()


async def test_the_clusters_own_node_list_gives_the_devices_of_its_nodes(tmp_path: Path) -> None:
    def a_page(name: str, token: str) -> dict[str, object]:
        registration = f'[{{"id":"GPU-{name}","count":10,"devmem":1,"devcore":100,"type":"A100"}}]'
        metadata = {"name": name, "annotations": {"hami.io/node-nvidia-register": registration}}
        return {"items": [{"metadata": metadata}], "metadata": {"continue": token}}

    async def answer_nodes(request: web.Request) -> web.Response:
        return web.json_response(a_page("n2", "") if request.query.get("continue") == "more" else a_page("n1", "more"))

    async with served({"/api/v1/nodes": answer_nodes}) as url:
        kubeconfig = tmp_path / "config"
        cluster = {"name": "c", "cluster": {"server": url}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        user = {"name": "u", "user": {}}
        kubeconfig.write_text(
            json.dumps({"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"})
        )
        pages = [parse_node_list(page) async for page in list_nodes(kubeconfig)]
    devices = [{uuid: device.node for uuid, device in page.items()} for page in pages]
    assert devices == [{"GPU-n1": "n1"}, {"GPU-n2": "n2"}]


async def test_a_pod_known_by_the_beginning_of_its_name_is_followed_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_choice, "LOOK_SECONDS", 0.05)
    logs = {name: Kubelet([stamp(number) for number in (0, 3, 6)]) for name in ("hami-scheduler-a", "hami-scheduler-b")}
    there = ["hami-scheduler-a"]

    async def answer_pods(_: web.Request) -> web.Response:
        items = [{"metadata": {"name": name}, "status": {"phase": "Running"}} for name in there]
        return web.json_response({"items": items, "metadata": {}})

    routes: dict[str, Handler] = {f"/api/v1/namespaces/kube-system/pods/{name}/log": k.log for name, k in logs.items()}
    names: list[str] = []
    async with served(routes | {"/api/v1/namespaces/kube-system/pods": answer_pods}) as url, connected(url) as client:
        wanted = PodContainer("kube-system", "hami-scheduler-*", "extender")
        async with asyncio.timeout(30), aclosing(follow_chosen(client, wanted, "")) as stream:
            async for found_lines, reached in stream:
                name = reached.partition("/")[0]
                names += [name] * len(found_lines.texts)
                if len(names) == 3:
                    there[:] = ["hami-scheduler-b"]
                if len(names) == 6:
                    break
    assert names == ["hami-scheduler-a"] * 3 + ["hami-scheduler-b"] * 3


async def test_a_restart_continues_in_the_log_of_the_same_pod_and_reads_another_from_its_start() -> None:
    kubelet = Kubelet([stamp(number) for number in (0, 3, 6, 9, 12)])
    since = Since().advance(kubelet.current[2].split(" ")[0])

    async def read_first_lines(reached: str) -> int:
        async def answer_pods(_: web.Request) -> web.Response:
            return web.json_response({"items": [{"metadata": {"name": "hami-scheduler-a"}}], "metadata": {}})

        routes: dict[str, Handler] = {
            "/api/v1/namespaces/kube-system/pods/hami-scheduler-a/log": kubelet.log,
            "/api/v1/namespaces/kube-system/pods": answer_pods,
        }
        async with served(routes) as url, connected(url) as client, asyncio.timeout(30):
            wanted = PodContainer("kube-system", "hami-scheduler-*", "extender")
            async with aclosing(follow_chosen(client, wanted, reached)) as stream:
                found_lines, _ = await anext(stream)
                return len(found_lines.texts)

    assert await read_first_lines(f"hami-scheduler-a/{since}") == 2
    assert await read_first_lines(f"hami-scheduler-z/{since}") == 5
