"""Profiles of a running scheduler, opened by Go's own tool."""

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from embedded.control_plane import toolchain
from embedded.download import user_cache
from tests.support.harness.scheduler_process import SchedulerProcess, a_refused_pod

pytestmark = pytest.mark.timeout(900)
"""On a new machine the first `go tool pprof` builds itself."""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    flags = ["--no-publish", "--profiling", "--profiling-address", "127.0.0.1:0"]
    with SchedulerProcess(tmp_path_factory.mktemp("profiled"), *flags) as running:
        yield running


@pytest.fixture(scope="module")
def profiles(process: SchedulerProcess) -> str:
    (line,) = [line for line in process.log.read_text().splitlines() if "profiles are at" in line]
    return line.rsplit(" ", 1)[1].rstrip("/")


@pytest.fixture
def top(tmp_path: Path) -> Callable[[bytes], str]:
    go = toolchain.choose_toolchain(os.environ, user_cache(os.environ) / "control-plane")
    if not go.is_installed:
        pytest.skip("no Go here: `python -m embedded kubernetes install` brings one")

    def opened(content: bytes) -> str:
        """What `go tool pprof -top` says about the file."""
        path = tmp_path / "profile.pb.gz"
        path.write_bytes(content)
        command = [str(go.executable), "tool", "pprof", "-top", "-nodecount=500", "-nodefraction=0", str(path)]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    return opened


@contextmanager
def meanwhile(url: str) -> Iterator["Future[httpx.Response]"]:
    """The answer of what takes its time, complete at the end."""
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(httpx.get, url, timeout=30)


def test_go_opens_a_cpu_profile_and_names_our_functions(
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


def test_go_opens_a_heap_profile_whose_sum_is_the_process(
    process: SchedulerProcess, profiles: str, top: Callable[[bytes], str]
) -> None:
    shown = top(httpx.get(f"{profiles}/heap?seconds=0.5", timeout=30).content)
    assert "Type: inuse_space" in shown
    assert "[not traced: from before tracing began, or of C libraries]" in shown
    assert httpx.get(f"{profiles}/heap?stop=1").text == "memory is not traced any more\n"


def test_a_flame_is_plain_text(process: SchedulerProcess, profiles: str) -> None:
    answer = httpx.get(f"{profiles}/flame?seconds=0.3", timeout=10)
    assert answer.headers["content-type"].startswith("text/plain")
    assert " ms of CPU in 0.3 s" in answer.text


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


def test_without_the_flag_there_is_nothing(tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path, "--no-publish") as quiet:
        assert "profiles are at" not in quiet.log.read_text()
        assert httpx.get(f"{quiet.url}/debug/pprof/").status_code == 404
