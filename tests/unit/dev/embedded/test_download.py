import fcntl
import hashlib
import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.embedded.download import get_repository, install, list_missing, locate_cache
from dev.embedded.errors import DownloadError
from dev.embedded.lock import Jar
from dev.embedded.progress import NoProgress, ProgressLines
from tests.support.fakes.maven_repository import FakeRepository, a_repository

CONTENT = bytes(range(256)) * 1024


def a_jar(path: str = "org/example/thing/1.0/thing-1.0.jar", content: bytes = CONTENT) -> Jar:
    return Jar(path, len(content), hashlib.sha256(content).hexdigest())


def derive_part_path(cache: Path, jar: Jar) -> Path:
    return cache / f"{jar.path}.part"


class Remembering(NoProgress):
    """Remembers how large files were."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def report(self, path: str, have_bytes: int) -> None:
        self.sizes.append(have_bytes)


@pytest.fixture
def source() -> Iterator[FakeRepository]:
    with a_repository({a_jar().path: CONTENT}) as running:
        yield running


def fetch(source: FakeRepository, cache: Path) -> int:
    """Install the one jar without waiting between attempts."""
    return install([a_jar()], cache, source.url, pause=lambda _seconds: None)


def test_a_jar_is_downloaded_once_and_found_there_afterwards(source: FakeRepository, tmp_path: Path) -> None:
    assert fetch(source, tmp_path) == 1
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT
    assert fetch(source, tmp_path) == 0
    assert len(source.requests) == 1


def test_every_jar_arrives_when_there_are_more_than_connections(tmp_path: Path) -> None:
    contents = {f"org/example/{number}/thing.jar": bytes([number]) * 1000 for number in range(30)}
    jars = [a_jar(path, content) for path, content in contents.items()]
    with a_repository(contents) as source:
        assert install(jars, tmp_path, source.url) == 30
    assert {jar.path: (tmp_path / jar.path).read_bytes() for jar in jars} == contents


def test_a_broken_connection_is_continued_where_it_broke(source: FakeRepository, tmp_path: Path) -> None:
    source.break_after_bytes = [100_000]
    fetch(source, tmp_path)
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT
    assert source.ranges == [None, "bytes=100000-"]


def test_a_part_of_a_killed_run_is_continued(source: FakeRepository, tmp_path: Path) -> None:
    part = derive_part_path(tmp_path, a_jar())
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT[:1000])
    fetch(source, tmp_path)
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT
    assert source.ranges == ["bytes=1000-"]


def test_a_repository_without_ranges_sends_all_again(source: FakeRepository, tmp_path: Path) -> None:
    source.ignores_ranges = True
    source.break_after_bytes = [5000]
    fetch(source, tmp_path)
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"x" * len(CONTENT), b"x" * (len(CONTENT) + 1), b"x" * 10], ids=len)
def test_wrong_bytes_left_by_another_run_are_thrown_away(source: FakeRepository, tmp_path: Path, left: bytes) -> None:
    part = derive_part_path(tmp_path, a_jar())
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    fetch(source, tmp_path)
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT


def test_wrong_bytes_from_the_repository_are_asked_for_once_more(source: FakeRepository, tmp_path: Path) -> None:
    source.bodies = [b"y" * len(CONTENT)]
    fetch(source, tmp_path)
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT


def test_a_jar_with_another_hash_is_never_accepted(source: FakeRepository, tmp_path: Path) -> None:
    source.files[a_jar().path] = b"z" * len(CONTENT)
    with pytest.raises(DownloadError, match="SHA-256 differs from the lock file"):
        fetch(source, tmp_path)
    assert list(tmp_path.rglob("*.jar")) == []


def test_more_bytes_than_the_lock_says_are_not_read_to_the_end(source: FakeRepository, tmp_path: Path) -> None:
    source.files[a_jar().path] = CONTENT * 400
    progress = Remembering()
    with pytest.raises(DownloadError, match=r"thing-1\.0\.jar"):
        install([a_jar()], tmp_path, source.url, progress, pause=lambda _seconds: None)
    assert max(progress.sizes) < 2 * len(CONTENT)


def test_a_jar_damaged_in_the_cache_is_downloaded_again(source: FakeRepository, tmp_path: Path) -> None:
    fetch(source, tmp_path)
    (tmp_path / a_jar().path).write_bytes(b"w" * len(CONTENT))
    assert list_missing([a_jar()], tmp_path) == [a_jar()]
    fetch(source, tmp_path)
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_status_is_tried_again(source: FakeRepository, tmp_path: Path, status: int) -> None:
    source.statuses = [status, status]
    fetch(source, tmp_path)
    assert (tmp_path / a_jar().path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_lasting_status_names_the_address_and_the_setting(
    source: FakeRepository, tmp_path: Path, status: int
) -> None:
    source.statuses = [status] * 10
    with pytest.raises(DownloadError, match=rf"{source.url}/org/.*{status}.*SCHEDULERLOG_MAVEN_REPOSITORY"):
        fetch(source, tmp_path)
    assert len(source.requests) == 1


def test_an_address_without_a_server_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:1/.*connection broken.*SCHEDULERLOG_MAVEN_REPOSITORY"):
        install([a_jar()], tmp_path, "http://127.0.0.1:1", pause=lambda _seconds: None)


@pytest.mark.parametrize("url", ["ftp://example.org", "no-scheme", "http://"])
def test_a_senseless_address_is_an_error_at_once(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="SCHEDULERLOG_MAVEN_REPOSITORY"):
        install([a_jar()], tmp_path, url)


def test_attempts_are_further_and_further_apart(source: FakeRepository, tmp_path: Path) -> None:
    source.statuses = [503] * 10
    pauses: list[float] = []
    with pytest.raises(DownloadError, match="answered 503, 5 times"):
        install([a_jar()], tmp_path, source.url, pause=pauses.append)
    assert pauses == sorted(pauses)
    assert len(pauses) == 4


def test_a_cache_that_cannot_be_written_names_the_setting(source: FakeRepository, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DownloadError, match="XDG_CACHE_HOME"):
        install([a_jar()], tmp_path / "file" / "cache", source.url)


def test_a_full_disk_is_an_error_that_names_the_place(source: FakeRepository, tmp_path: Path) -> None:
    part = derive_part_path(tmp_path, a_jar())
    part.parent.mkdir(parents=True)
    # Whatever is written to this device meets a disk without room.
    part.symlink_to("/dev/full")
    with pytest.raises(DownloadError, match=r"thing-1\.0\.jar\.part: cannot be written .*No space left"):
        fetch(source, tmp_path)


def test_processes_that_install_at_once_download_once(source: FakeRepository, tmp_path: Path) -> None:
    # Not forked: this process has threads.
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=install, args=([a_jar()], tmp_path, source.url)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(source.requests) == 1


def test_a_waiting_install_says_so(source: FakeRepository, tmp_path: Path) -> None:
    lines: list[str] = []
    waits = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        waits.set()

    with (tmp_path / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thread = threading.Thread(target=install, args=([a_jar()], tmp_path, source.url, ProgressLines(write)))
        thread.start()
        assert waits.wait(10)
    thread.join()
    assert lines == ["another process is installing; waiting for it", "Downloading 1 jars, 0 MB", "0 of 0 MB"]


def test_the_cache_follows_the_xdg_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert locate_cache({"XDG_CACHE_HOME": "/var/caches"}) == Path("/var/caches/schedulerlog/jars")
    assert locate_cache({}) == Path("/home/someone/.cache/schedulerlog/jars")
    assert locate_cache({"XDG_CACHE_HOME": "relative"}) == Path("/home/someone/.cache/schedulerlog/jars")


def test_another_repository_can_be_named() -> None:
    assert get_repository({"SCHEDULERLOG_MAVEN_REPOSITORY": "https://mirror.example/maven/"}) == (
        "https://mirror.example/maven"
    )
    assert get_repository({"SCHEDULERLOG_MAVEN_REPOSITORY": ""}) == get_repository({})
