import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from dev import embedded
from dev.embedded.process import ProcessId
from dev.embedded.state import read_state
from tests.support.backends import Addresses
from tests.support.stress import IS_STRESS, run_in_make_stress


@pytest.fixture
def new_backends() -> Iterator[Callable[..., embedded.Backends]]:
    """Starts servers, as embedded.backends: ``new_backends(brokers=3, only="kafka")``."""
    with ExitStack() as stack:
        yield lambda **how: stack.enter_context(embedded.backends(**how))


async def create_topic(bootstrap_servers: str, name: str, copies: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        answer = await admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=copies)])
        assert [error[1] for error in answer.topic_errors] == [0]
    finally:
        await admin.close()


async def write(bootstrap_servers: str, topic: str, value: bytes) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks="all") as producer:
        await producer.send_and_wait(topic, value)


async def read_all(bootstrap_servers: str, topic: str) -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest")
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    async with consumer:
        end = (await consumer.end_offsets([partition]))[partition]
        return [(await consumer.getone()).value for _ in range(end)]


def put_document(url: str, index: str, text: str) -> None:
    httpx.put(f"{url}/{index}/_doc/1", params={"refresh": "true"}, json={"text": text}, timeout=30).raise_for_status()


def get_document(url: str, index: str) -> str:
    return str(httpx.get(f"{url}/{index}/_doc/1", timeout=30).raise_for_status().json()["_source"]["text"])


def list_indices(url: str) -> list[object]:
    return list(httpx.get(f"{url}/_cat/indices", params={"format": "json"}, timeout=30).raise_for_status().json())


def run_command(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    in_folder = ["--dir", str(folder)] if folder else []
    return subprocess.run(
        [sys.executable, "-m", "dev.embedded", *arguments, *in_folder],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def read_environment(folder: Path) -> dict[str, str]:
    """Read what a shell has after ``eval "$(python -m dev.embedded env)"``."""
    lines = run_command("env", folder=folder).stdout.splitlines()
    return dict(line.removeprefix("export ").split("=", 1) for line in lines)


def maps_an_aot_cache(pid: int) -> bool:
    return ".aot" in Path(f"/proc/{pid}/maps").read_text(encoding="ascii")


async def test_backends_of_the_test_run_take_records_and_documents(backends: Addresses) -> None:
    await create_topic(backends.bootstrap_servers, "embedded-smoke")
    await write(backends.bootstrap_servers, "embedded-smoke", b"one")
    assert await read_all(backends.bootstrap_servers, "embedded-smoke") == [b"one"]
    put_document(backends.opensearch_url, "embedded-smoke", "two")
    assert get_document(backends.opensearch_url, "embedded-smoke") == "two"


async def test_servers_start_empty_and_keep_their_data_over_kill_9_on_the_same_address(
    new_backends: Callable[..., embedded.Backends],
) -> None:
    # Done before by `make test`: then it takes a second.
    assert run_command("install").returncode == 0
    running = new_backends()
    assert all(maps_an_aot_cache(server.pid) for server in running.servers)
    servers, url = running.bootstrap_servers, running.opensearch_url
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        assert await consumer.topics() == set()
    assert await asyncio.to_thread(list_indices, url) == []
    await create_topic(servers, "kept")
    await write(servers, "kept", b"before")
    put_document(url, "kept", "before")

    for server in running.servers:
        server.kill()
        server.start()

    assert (running.bootstrap_servers, running.opensearch_url) == (servers, url)
    assert await read_all(servers, "kept") == [b"before"]
    assert get_document(url, "kept") == "before"
    await write(servers, "kept", b"after")
    assert await read_all(servers, "kept") == [b"before", b"after"]

    await asyncio.to_thread(a_paused_index_answers_nothing_until_it_is_resumed, running)


def a_paused_index_answers_nothing_until_it_is_resumed(running: embedded.Backends) -> None:
    running.opensearch.pause()
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(running.opensearch_url, timeout=1)
    running.opensearch.resume()
    assert httpx.get(running.opensearch_url, timeout=10).status_code == 200


@run_in_make_stress
async def test_three_brokers_take_writes_without_one_and_refuse_them_without_two(
    new_backends: Callable[..., embedded.Backends],
) -> None:
    running = new_backends(brokers=3, only="kafka")
    await create_topic(running.bootstrap_servers, "replicated", copies=3)
    await write(running.bootstrap_servers, "replicated", b"three")

    running.kafka[0].kill()
    await write(running.bootstrap_servers, "replicated", b"two")
    running.kafka[0].start()

    # Stopped in order, so that the two that are left lose a copy, not the majority that elects a leader.
    running.kafka[1].stop()
    running.kafka[2].kill()
    async with asyncio.timeout(60):
        with pytest.raises((KafkaError, TimeoutError)):
            async with AIOKafkaProducer(
                bootstrap_servers=running.kafka[0].bootstrap_server, acks="all", request_timeout_ms=5000
            ) as producer:
                await producer.send_and_wait("replicated", b"one")
    running.kafka[1].launch()
    running.kafka[2].start()
    running.kafka[1].wait_until_ready()
    read = await read_all(running.bootstrap_servers, "replicated")
    assert read[:2] == [b"three", b"two"]


def test_in_a_folder_of_any_name_and_any_locale_servers_start_and_end_with_a_killed_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    folder = tmp_path / "a b = c\\ü 日志"
    program = (
        "import time; from dev import embedded; from pathlib import Path\n"
        f"with embedded.backends(Path({str(folder)!r}), keep_data=True): print('up', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"up\n"
        processes = list_processes(folder)
        assert [process.is_alive() for process in processes] == [True, True]
        starter.kill()
    assert all(process.wait_for_end(10) for process in processes)


@run_in_make_stress
def test_a_folder_in_use_is_not_used_again(tmp_path: Path) -> None:
    with embedded.backends(tmp_path, only="opensearch", keep_data=True) as running:
        put_document(running.opensearch_url, "kept", "first run")
        again = embedded.backends(tmp_path, only="opensearch", keep_data=True)
        with pytest.raises(embedded.EmbeddedError, match=r"in use \(opensearch running\)"), again:
            pass
    with embedded.backends(tmp_path, only="opensearch", keep_data=True) as running:
        assert get_document(running.opensearch_url, "kept") == "first run"


def test_the_command_line_starts_shows_stops_and_keeps_data(tmp_path: Path) -> None:
    try:
        assert run_command("up", folder=tmp_path).returncode == 0
        first = list_processes(tmp_path)
        status = run_command("status", folder=tmp_path)
        assert status.returncode == 0
        assert [line.split()[:2] for line in status.stdout.splitlines()] == [["kafka-0", "up"], ["opensearch", "up"]]
        addresses = read_environment(tmp_path)
        put_document(addresses["SCHEDULERLOG_OPENSEARCH_URL"], "kept", "text")
        asyncio.run(create_topic(addresses["SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS"], "kept"))

        assert run_command("up", folder=tmp_path).returncode == 0
        assert list_processes(tmp_path) == first

        os.kill(first[0].pid, signal.SIGKILL)
        assert first[0].wait_for_end(10)
        half = run_command("status", folder=tmp_path)
        assert half.returncode == 1
        assert [line.split()[1] for line in half.stdout.splitlines()] == ["dead", "up"]
        assert run_command("env", folder=tmp_path).returncode == 1

        assert run_command("up", folder=tmp_path).returncode == 0
        assert list_processes(tmp_path)[1] == first[1]
        assert read_environment(tmp_path) == addresses

        assert get_document(addresses["SCHEDULERLOG_OPENSEARCH_URL"], "kept") == "text"
    finally:
        assert run_command("down", folder=tmp_path).returncode == 0
    assert not any(process.is_alive() for process in list_processes(tmp_path) + first)


@run_in_make_stress
def test_only_one_of_the_servers_is_started_and_finds_its_data(tmp_path: Path) -> None:
    try:
        assert run_command("up", folder=tmp_path).returncode == 0
        url = read_environment(tmp_path)["SCHEDULERLOG_OPENSEARCH_URL"]
        put_document(url, "kept", "text")
        assert run_command("down", folder=tmp_path).returncode == 0
        assert run_command("up", "--only", "opensearch", folder=tmp_path).returncode == 0
        status = run_command("status", folder=tmp_path).stdout
        assert [line.split()[1] for line in status.splitlines()] == ["dead", "up"]
        assert get_document(url, "kept") == "text"
    finally:
        down = run_command("down", folder=tmp_path)
    assert down.stderr.strip() == "stopped opensearch"


@pytest.mark.stress
@pytest.mark.parametrize("number", [signal.SIGINT, *([signal.SIGTERM] if IS_STRESS else [])])
def test_an_interrupted_start_leaves_nothing_that_down_does_not_find(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-m", "dev.embedded", "up", "--dir", str(tmp_path)]) as up:
        while not (tmp_path / "state.json").exists():
            time.sleep(0.01)
        up.send_signal(number)
    assert up.returncode != 0
    processes = list_processes(tmp_path)
    if number == signal.SIGINT:
        assert not any(process.is_alive() for process in processes)
    assert run_command("down", folder=tmp_path).returncode == 0
    assert not any(process.is_alive() for process in processes)


@run_in_make_stress
def test_ports_taken_while_everything_was_down_are_exchanged(tmp_path: Path) -> None:
    try:
        assert run_command("up", folder=tmp_path).returncode == 0
        before = read_environment(tmp_path)
        assert run_command("down", folder=tmp_path).returncode == 0
        ports = [int(address.rpartition(":")[2]) for address in before.values()]
        listeners = [socket.create_server(("127.0.0.1", port)) for port in ports]
        assert run_command("up", folder=tmp_path).returncode == 0
        after = read_environment(tmp_path)
        assert set(after) == set(before)
        assert not set(after.values()) & set(before.values())
        for listener in listeners:
            listener.close()
    finally:
        run_command("down", folder=tmp_path)


def test_ports_taken_meanwhile_and_damaged_data_are_named_on_restart(
    new_backends: Callable[..., embedded.Backends],
) -> None:
    kafka = new_backends(only="kafka").kafka[0]
    kafka.kill()
    with (
        socket.create_server(("127.0.0.1", kafka.port)),
        pytest.raises(embedded.PortTakenError, match=f"kafka-0: port {kafka.port} on 127.0.0.1 is taken"),
    ):
        kafka.start()
    with (
        socket.create_server(("127.0.0.1", kafka.addresses[0].controller_port)),
        pytest.raises(embedded.PortTakenError, match=r"kafka-0 died while starting(.|\n)*Address already in use"),
    ):
        kafka.start()
    meta = kafka.home / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=0", "node.id=7"))
    with pytest.raises(embedded.ServerError, match=r"(?s)died while starting \(exit status 1\).*Stored node id 7"):
        kafka.start()
    meta.write_text(meta.read_text().replace("node.id=7", "node.id=0"))
    kafka.start()


@run_in_make_stress
def test_an_index_that_lands_on_another_port_is_not_taken_for_ours(
    new_backends: Callable[..., embedded.Backends], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_backends(only="opensearch").opensearch
    ours = new_backends(only="opensearch").opensearch
    ours.kill()
    # As if the other had been faster by a moment, after we found the port free.
    ours.port = other.port
    monkeypatch.setattr("dev.embedded.server.is_free", lambda _port: True)
    with pytest.raises(embedded.PortTakenError, match=f"port {other.port} was taken"):
        ours.start()


@run_in_make_stress
def test_a_heap_too_small_is_an_error_with_the_log() -> None:
    settings = embedded.JvmSettings(opensearch_heap="16m")
    died = pytest.raises(embedded.ServerError, match=r"(?s)opensearch died while starting.*OutOfMemoryError")
    with died, embedded.backends(only="opensearch", settings=settings):
        pass


def list_processes(folder: Path) -> list[ProcessId]:
    state = read_state(folder)
    assert state is not None
    return [server.process for server in state.servers if server.process]
