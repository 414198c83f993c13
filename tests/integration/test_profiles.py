"""Profiles of running processes: scheduler, worker and API. ``make stress`` opens them with Go's own tool too."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from dev.embedded.control_plane import toolchain
from dev.embedded.download import user_cache
from tests.support.harness.scheduler_process import SchedulerProcess, a_refused_pod
from tests.support.profile_decoder import DecodedProfile
from tests.support.stress import IS_STRESS
from tests.support.waiting import eventually

pytestmark = [pytest.mark.stress, pytest.mark.timeout(900)]
# On a new machine the first `go tool pprof` builds itself, which takes a minute of CPU.
READERS = ["by field numbers", *(["by Go's tool"] if IS_STRESS else [])]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    flags = ["--no-publish", "--profiling", "--profiling-address", "127.0.0.1:0"]
    with SchedulerProcess(tmp_path_factory.mktemp("profiled"), *flags) as running:
        yield running


@pytest.fixture(scope="module")
def profiles(process: SchedulerProcess) -> str:
    return _place(process.log)


def _place(log: Path) -> str:
    (line,) = [line for line in log.read_text().splitlines() if "profiles are at" in line]
    return line.rsplit(" ", 1)[1].rstrip("/")


@contextmanager
def started(log: Path, *command: str) -> Iterator[str]:
    """Where the command serves its profiles; Kafka and OpenSearch are away, which it waits for."""
    away = {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:1"}
    asked = {"SCHEDULERLOG_PROFILING": "true", "SCHEDULERLOG_PROFILING_ADDRESS": "0"}
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], env=os.environ | away | asked, stdout=written, stderr=written
        )
    try:
        eventually(lambda: "profiles are at" in log.read_text(), "no profiles are served")
        yield _place(log)
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def all_profiles(profiles: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    logs = tmp_path_factory.mktemp("logs")
    api = started(logs / "api.log", "api", "serve", "--listen", "0")
    with started(logs / "worker.log", "pipeline", "worker") as worker, api as of_api:
        yield {"scheduler": profiles, "worker": worker, "api": of_api}


@pytest.fixture(params=READERS)
def top(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bytes], str]:
    """Shows a profile's type and functions, as `go tool pprof -top` does."""
    if request.param == "by field numbers":
        return shown_by_field_numbers
    go = toolchain.choose_toolchain(os.environ, user_cache(os.environ) / "control-plane")
    if not go.is_installed:
        pytest.skip("no Go here: `schedulerlog embedded kubernetes install` brings one")

    def opened(content: bytes) -> str:
        path = tmp_path / "profile.pb.gz"
        path.write_bytes(content)
        command = [str(go.executable), "tool", "pprof", "-top", "-nodecount=500", "-nodefraction=0", str(path)]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    return opened


def shown_by_field_numbers(content: bytes) -> str:
    profile = DecodedProfile(content)
    functions = {function for lines, _ in profile.samples for function, _ in lines}
    # Go's tool shows the last of the file's types.
    return "\n".join([f"Type: {profile.types[-1][0]}", *functions])


@contextmanager
def meanwhile(url: str) -> Iterator["Future[httpx.Response]"]:
    """The answer of what takes its time, complete at the end."""
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(httpx.get, url, timeout=30)


def test_a_cpu_profile_names_our_functions(
    process: SchedulerProcess, profiles: str, top: Callable[[bytes], str]
) -> None:
    numbers, shown = itertools.count(), ""
    for _ in range(5):  # samples are chance, and few where the process gets little of the CPU
        with meanwhile(f"{profiles}/profile?seconds=1") as answer:
            while not answer.done():
                process.filter(a_refused_pod(f"pod{next(numbers)}", "profiled"))
        shown = top(answer.result().content)
        assert "Type: cpu" in shown
        if "decide" in shown:
            break
    assert "decide" in shown


def test_the_sum_of_a_heap_profile_is_the_process(
    process: SchedulerProcess, profiles: str, top: Callable[[bytes], str]
) -> None:
    shown = top(httpx.get(f"{profiles}/heap?seconds=0.5", timeout=30).content)
    assert "Type: inuse_space" in shown
    assert "[not traced: from before tracing began, or of C libraries]" in shown
    assert httpx.get(f"{profiles}/heap?stop=1").text == "memory is not traced any more\n"


@pytest.mark.parametrize("name", ["scheduler", "worker", "api"])
def test_every_process_is_profiled_while_kafka_and_the_index_are_away(
    all_profiles: dict[str, str], name: str, top: Callable[[bytes], str]
) -> None:
    answer = httpx.get(f"{all_profiles[name]}/flame?seconds=0.3", timeout=30)
    assert answer.headers["content-type"].startswith("text/plain")
    assert " ms of CPU in 0.3 s" in answer.text
    assert "MainThread" in httpx.get(f"{all_profiles[name]}/threads", timeout=30).text
    assert "Type: cpu" in top(httpx.get(f"{all_profiles[name]}/profile?seconds=0.3", timeout=30).content)


@pytest.mark.parametrize("seconds", ["0", "-1", "abc", "nan", "601", "1e9"])
def test_a_time_that_is_none_is_refused(profiles: str, seconds: str) -> None:
    answer = httpx.get(f"{profiles}/profile?seconds={seconds}")
    assert (answer.status_code, answer.text[:8]) == (400, "seconds=")


def test_a_second_profile_at_the_same_time_is_refused(profiles: str) -> None:
    with meanwhile(f"{profiles}/profile?seconds=4") as first:
        second = httpx.get(f"{profiles}/flame?seconds=4", timeout=60)
    assert sorted([first.result().status_code, second.status_code]) == [200, 503]


def test_everything_that_there_is_stands_on_one_page(profiles: str) -> None:
    page = httpx.get(f"{profiles}/").text
    for name in ("profile", "flame", "heap", "threads"):
        assert f"/debug/pprof/{name}" in page
    assert "MainThread" in httpx.get(f"{profiles}/threads").text
    assert "MainThread" in httpx.get(f"{profiles}/goroutine").text
    assert httpx.get(f"{profiles}/mutex").status_code == 404
