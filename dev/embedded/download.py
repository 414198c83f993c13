"""Downloads jars from a Maven repository into the user's cache: verified, resumed, safe with several processes at once.

A jar gets its own name only after its SHA-256 was verified (write to ``.part``, verify, rename). A process that is
killed therefore leaves at most a ``.part`` file, which the next run continues with an HTTP range. One install at a time
writes; the others wait at a lock file and then find every jar there.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from dev.embedded.errors import DownloadError
from dev.embedded.lock import Jar
from dev.embedded.locking import file_lock
from dev.embedded.progress import NoProgress, Progress, started

REPOSITORY_VARIABLE: Final = "SCHEDULERLOG_MAVEN_REPOSITORY"
DEFAULT_REPOSITORY: Final = "https://repo.maven.apache.org/maven2"
# A hundred and fifty small files: one after the other, the time of each request would dominate.
PARALLEL: Final = 4
ATTEMPTS: Final = 5


def get_repository(environment: Mapping[str, str]) -> str:
    """Get the base URL to download from, without a slash at its end."""
    return (environment.get(REPOSITORY_VARIABLE) or DEFAULT_REPOSITORY).rstrip("/")


def locate_cache(environment: Mapping[str, str]) -> Path:
    """Locate the folder of the jars."""
    return locate_user_cache(environment) / "jars"


def locate_user_cache(environment: Mapping[str, str]) -> Path:
    """Locate our folder in the user's cache: ``$XDG_CACHE_HOME/schedulerlog``, by default below ``~/.cache``."""
    # The XDG specification demands that a relative path is ignored.
    root = Path(environment.get("XDG_CACHE_HOME", ""))
    return (root if root.is_absolute() else Path.home() / ".cache") / "schedulerlog"


def is_intact(file: Path, jar: Jar) -> bool:
    """Tell whether the file exists with the size and SHA-256 of the lock file."""
    try:
        return file.stat().st_size == jar.size and _hash_file(file) == jar.sha256
    except OSError:
        return False


def list_missing(jars: Sequence[Jar], cache: Path) -> list[Jar]:
    """List the jars that the cache lacks, or has only damaged."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        intact = pool.map(lambda jar: is_intact(cache / jar.path, jar), jars)
        return [jar for jar, is_there in zip(jars, intact, strict=True) if not is_there]


def install(
    jars: Sequence[Jar],
    cache: Path,
    base_url: str,
    progress: Progress | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Bring every jar into the cache; returns how many were downloaded. ``pause`` waits (seconds) between attempts.

    Raises DownloadError; the next run continues with the bytes that have arrived.
    """
    # Before the lock: the usual case must not wait for another process that installs.
    if not list_missing(jars, cache):
        return 0
    progress = progress or NoProgress()
    with _one_install_at_a_time(cache, progress):
        wanted = list_missing(jars, cache)
        if wanted:
            _download_all(wanted, Repository(base_url, cache, pause), progress)
        return len(wanted)


@dataclass(frozen=True, slots=True)
class Repository:
    """Source of jars, and the cache for them."""

    base_url: str
    cache: Path
    pause: Callable[[float], None]

    def build_url(self, jar: Jar) -> str:
        return f"{self.base_url}/{jar.path}"

    def fetch(self, jar: Jar, client: httpx.Client, progress: Progress) -> None:
        """Download and verify one jar and give it its name; retries passing failures; raises DownloadError."""
        target = self.cache / jar.path
        part = target.with_suffix(".jar.part")
        for attempt in range(1, ATTEMPTS + 1):
            problem = self._try_once(jar, part, client, progress)
            if problem is None:
                part.replace(target)
                return
            if attempt < ATTEMPTS:
                # Longer each time, so that a repository that is overloaded gets time to recover.
                self.pause(min(0.2 * 2**attempt, 5.0))
        raise DownloadError(f"{self.build_url(jar)}: {problem}, {ATTEMPTS} times. {_suggest_next_step()}")

    def _try_once(self, jar: Jar, part: Path, client: httpx.Client, progress: Progress) -> str | None:
        """Try once: return None if the part file is now the complete jar, else the problem that another attempt may
        solve."""
        try:
            self._continue_part(jar, part, client, progress)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects) as error:
            raise DownloadError(f"{self.build_url(jar)}: {error}. {_suggest_next_step()}") from error
        except OSError as error:
            raise _build_write_error(part, error) from error
        except httpx.TransportError as error:
            return f"connection broken ({str(error) or type(error).__name__})"
        except httpx.HTTPStatusError as error:
            return _describe_passing_status(error)
        if part.stat().st_size < jar.size:
            return f"only {part.stat().st_size} of {jar.size} bytes arrived"
        if is_intact(part, jar):
            return None
        # The bytes that are there are wrong, so continuing the file would never make it right.
        part.unlink()
        progress.report(jar.path, 0)
        return "the SHA-256 differs from the lock file"

    def _continue_part(self, jar: Jar, part: Path, client: httpx.Client, progress: Progress) -> None:
        part.parent.mkdir(parents=True, exist_ok=True)
        have = part.stat().st_size if part.exists() else 0
        # Complete, or too long: the hash decides, not another download.
        if have >= jar.size:
            return
        # Compressed on the way, a range would count bytes of the compressed form.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with client.stream("GET", self.build_url(jar), headers=headers) as response:
            response.raise_for_status()
            # A server that does not support ranges answers 200 and sends the whole file.
            resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
            with part.open("ab" if resumed else "wb") as file:
                for chunk in response.iter_raw():
                    file.write(chunk)
                    progress.report(jar.path, file.tell())
                    if file.tell() > jar.size:
                        return  # more bytes than the jar has: the caller finds a wrong hash


def _download_all(jars: Sequence[Jar], source: Repository, progress: Progress) -> None:
    limits = httpx.Limits(max_connections=PARALLEL)
    timeout = httpx.Timeout(30.0, connect=15.0)
    with (
        started(progress, len(jars), sum(jar.size for jar in jars)),
        httpx.Client(limits=limits, timeout=timeout, follow_redirects=True) as client,
        ThreadPoolExecutor(PARALLEL) as pool,
    ):
        futures = [pool.submit(source.fetch, jar, client, progress) for jar in jars]
        done, pending = wait(futures, return_when=FIRST_EXCEPTION)
        for future in pending:
            # What has not begun is useless after a failure; files that have begun are continued by the next run.
            future.cancel()
        for future in done:
            future.result()


def _describe_passing_status(error: httpx.HTTPStatusError) -> str:
    """Describe a status that may pass by itself; raises DownloadError for any other."""
    status = error.response.status_code
    # 416: the repository's file is shorter than the part that we have.
    if status in {408, 416, 425, 429} or status >= 500:
        return f"the repository answered {status}"
    raise DownloadError(f"{error.request.url}: the repository answered {status}. {_suggest_next_step()}") from error


def _build_write_error(path: Path, error: OSError) -> DownloadError:
    return DownloadError(
        f"{path}: cannot be written ({error}). Free disk space there, or name another folder with XDG_CACHE_HOME."
    )


def _suggest_next_step() -> str:
    return f"Check the network, or set {REPOSITORY_VARIABLE} to the base URL of a repository that has it."


def _hash_file(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@contextmanager
def _one_install_at_a_time(cache: Path, progress: Progress) -> Iterator[None]:
    with ExitStack() as held:
        lock = file_lock(cache / ".lock", lambda: progress.note("another process is installing; waiting for it"))
        try:
            held.enter_context(lock)
        except OSError as error:
            raise _build_write_error(cache, error) from error
        yield
