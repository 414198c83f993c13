"""Profiles: the file is what the format's own description says, and the time is found where it is spent."""

import gc
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from runtime.telemetry.profiling import flame, heap, sampler
from runtime.telemetry.profiling.pprof import Frame, Profile, Sample, encoded
from runtime.telemetry.profiling.server import MAX_CONNECTIONS, ProfilingServer
from tests.support.profile_decoder import DecodedProfile, fields
from tests.support.waiting import eventually

INNER, OUTER = Frame("inner", "/src/a.py", 7), Frame("outer", "/src/b.py", 9)
CPU = (("samples", "count"), ("cpu", "nanoseconds"))


def test_a_profile_reads_back_by_the_published_field_numbers() -> None:
    samples = [
        Sample((INNER, OUTER), (3, 30_000_000), (("thread", "main"),)),
        Sample((OUTER,), (1, 2**40)),
    ]
    read = DecodedProfile(
        encoded(Profile(CPU, samples, time_ns=1_800_000_000 * 10**9, duration_ns=5, period=10, comments=("x",)))
    )
    assert read.strings[0] == ""
    assert read.types == list(CPU)
    assert read.samples == [
        ([("inner", 7), ("outer", 9)], [3, 30_000_000]),
        ([("outer", 9)], [1, 2**40]),
    ]
    assert (read.one(9), read.one(10), read.one(12)) == (1_800_000_000 * 10**9, 5, 10)
    assert read.strings[read.one(14)] == "cpu"
    (label,) = [value for number, value in fields(read.all(2)[0]) if number == 3]
    assert [read.strings[int(at)] for _, at in fields(bytes(label))] == ["thread", "main"]


def test_a_profile_of_nothing_is_one_too() -> None:
    assert DecodedProfile(encoded(Profile(CPU, [], 0))).samples == []


def test_a_flame_has_the_hottest_branch_first_and_shares_of_the_whole() -> None:
    samples = [
        Sample((INNER, OUTER), (3, 75_000_000)),
        Sample((OUTER,), (1, 24_900_000)),
        Sample((Frame("rare"), OUTER), (1, 100_000)),
    ]
    assert list(flame.tree(samples)) == [
        "100.0%      100.0 ms  outer (src/b.py)\n",
        " 75.0%       75.0 ms    inner (src/a.py)\n",
    ]


@contextmanager
def running(name: str) -> Iterator[list[int]]:
    """A thread that burns CPU time until the end, and then the nanoseconds that it has burnt."""
    ending, burnt = threading.Event(), list[int]()

    def burn() -> None:
        while not ending.is_set():
            sum(range(1000))
        burnt.append(time.thread_time_ns())

    def wait() -> None:
        ending.wait()

    threads = [threading.Thread(target=burn, name=name), threading.Thread(target=wait, name="waits")]
    for thread in threads:
        thread.start()
    yield burnt
    ending.set()
    for thread in threads:
        thread.join()


def test_cpu_time_is_found_in_the_thread_and_function_that_spend_it() -> None:
    with running("burns") as burnt:
        found = sampler.profile(0.5)
    by_thread: dict[str, int] = {}
    for sample in found.samples:
        by_thread[sample.labels[0][1]] = by_thread.get(sample.labels[0][1], 0) + sample.values[1]
    # On a busy machine the thread burns long before the first look and after the last.
    assert sum(by_thread.values()) * 0.9 < by_thread["burns"] <= burnt[0]
    assert by_thread.get("waits", 0) < burnt[0] * 0.01
    hottest = max(found.samples, key=lambda sample: sample.values[1])
    assert "burn" in {frame.function.rsplit(".", 1)[-1] for frame in hottest.stack}


@pytest.fixture
def tracing() -> Iterator[None]:
    yield
    heap.end()
    gc.freeze()  # again, as tests/conftest.py did: the profile ended that


def hold_a_megabyte() -> list[bytes]:
    return [bytes(1024) for _ in range(1024)]


def test_memory_is_found_where_it_was_allocated_and_the_sum_is_what_the_process_takes(tracing: None) -> None:
    gc.freeze()  # as the worker does
    assert heap.begin()
    assert not heap.begin()
    held = hold_a_megabyte()
    found = heap.profile()
    mine = [sample for sample in found.samples if any(frame.function.startswith("hold_a_m") for frame in sample.stack)]
    assert len(held) == 1024
    assert 1024**2 <= sum(sample.values[1] for sample in mine) < 1.2 * 1024**2
    assert sum(sample.values[0] for sample in mine) >= 1024
    status = Path("/proc/self/status").read_text().splitlines()
    (resident,) = [int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS")]
    assert sum(sample.values[1] for sample in found.samples) == pytest.approx(resident, rel=0.1)


def test_the_stack_of_every_thread_can_be_read() -> None:
    with running("burns"):
        expected_text = sampler.stacks()
    assert "burns:\n" in expected_text
    assert "in test_the_stack_of_every_thread_can_be_read" in expected_text


def test_the_path_of_goroutines_shows_the_threads() -> None:
    with closing(ProfilingServer("127.0.0.1", 0)) as server:
        for name in ("threads", "goroutine"):
            with urlopen(f"http://{server.address}/debug/pprof/{name}") as answer:
                assert "MainThread" in answer.read().decode()


def test_l10_a_link_from_another_page_begins_no_profile() -> None:
    with closing(ProfilingServer("127.0.0.1", 0)) as server:
        path = f"http://{server.address}/debug/pprof/heap"
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(path, headers={"Sec-Fetch-Site": "cross-site"}))
        assert not tracemalloc.is_tracing()


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [("localhost:6060", True), ("127.0.0.1", True), ("[::1]:6060", True), ("rebound.example:60", False), ("[", False)],
)
def test_n5_a_name_that_leads_here_is_not_answered(host: str, is_answered: bool) -> None:
    """Where an address has a name and no HTTPS, browsers do not say which page asks, and that page reads the answer."""
    with closing(ProfilingServer("127.0.0.1", 0)) as server:
        asked = Request(f"http://{server.address}/debug/pprof/threads", headers={"Host": host})
        with nullcontext() if is_answered else pytest.raises(HTTPError, match="403"):
            urlopen(asked).close()  # noqa: S310


def test_l10_connections_are_limited_and_those_that_end_are_free_again() -> None:
    with closing(ProfilingServer("127.0.0.1", 0)) as server:
        host, port = server.address.split(":")
        idle = [socket.create_connection((host, int(port)), timeout=30) for _ in range(MAX_CONNECTIONS)]
        with closing(socket.create_connection((host, int(port)), timeout=30)) as more:
            assert more.recv(1) == b""
        for connection in idle:
            connection.close()
        eventually(lambda: _answers(server), lambda: "no connection became free")


def _answers(server: ProfilingServer) -> bool:
    try:
        return bool(urlopen(f"http://{server.address}/debug/pprof/").read())
    except OSError:
        return False
