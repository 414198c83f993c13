"""A container's log through the API server, as ``kubectl logs --follow`` gives it, over lost connections and restarts.

The server takes only whole seconds in ``sinceTime``. So lines are requested with their times, to the nanosecond, and
after a lost connection those that were read before are skipped: up to the last line, which is recognised by its time
and by how many lines had that time. Where that line is missing (the file was rotated), all lines up to the newest time
are skipped.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from ingest.lines.blocks import Lines, Origin
from ingest.lines.framing import Framing, read_time
from runtime.backoff import draw_backoff_seconds
from runtime.kubernetes.client import Client
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.resources import PODS, Key

log = logging.getLogger(__name__)

SILENCE_SECONDS: Final = 300.0
"""A connection without data for so long is closed and opened again."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 15.0
OVERLAP: Final = timedelta(seconds=5)
"""Lines are requested from this long before the last line: the node's clock may have gone back."""
REFUSED_SECONDS: Final = 60.0
"""After a successful read, a refusal counts only when it lasts so long: an API server that has just started refuses
valid tokens and roles for a moment, and a pod that is being replaced is missing for a moment."""

_REFUSALS: Final = frozenset((401, 403, 404))
_MISTAKES: Final = ("is not valid for pod", "must be specified for pod")
"""The API server's texts about a container that does not exist; it answers 400, as for one that has not started yet."""


@dataclass(frozen=True, slots=True)
class PodContainer:
    """The container whose log is read."""

    namespace: str
    pod: str
    container: str = ""
    """Name; may be empty for a pod with one container."""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.namespace, self.pod, self.container)))

    @property
    def path(self) -> str:
        return PODS.build_object_path(Key(self.namespace, self.pod), "log")


@dataclass(frozen=True, slots=True)
class Since:
    """The last line that was read: its time as the server wrote it, and how many lines had that time."""

    stamp: str = ""
    lines: int = 0
    newest: str = ""
    """The latest time of any line: later than the last line's where the node's clock went back."""

    @classmethod
    def parse(cls, text: str) -> "Since":
        stamp, _, tail = text.partition(" ")
        lines, _, newest = tail.partition(" ")
        newest = newest or stamp
        is_whole = lines.isdigit() and all(read_time(time.encode()) for time in (stamp, newest))
        return cls(stamp, int(lines), newest) if is_whole else cls()

    def __str__(self) -> str:
        last = f"{self.stamp} {self.lines}" if self.stamp else ""
        return last if self.newest == self.stamp else f"{last} {self.newest}"

    def advance(self, stamp: str) -> "Since":
        # Several lines may have one time: only their number shows which was the last.
        if stamp == self.stamp:
            return Since(stamp, self.lines + 1, self.newest)
        is_newer = not self.newest or _to_sort_key(stamp) > _to_sort_key(self.newest)
        return Since(stamp, 1, stamp if is_newer else self.newest)

    @property
    def whole_second(self) -> str:
        """For ``sinceTime``."""
        moment = read_time(self.stamp.encode()) or datetime(1970, 1, 2, tzinfo=UTC)
        return (moment - OVERLAP).strftime("%Y-%m-%dT%H:%M:%SZ")


async def follow_pod(
    client: Client, container: PodContainer, since: Since, rng: Random | None = None
) -> AsyncIterator[tuple[Lines, Since]]:
    """Follow a container's log without an end, over lost connections and restarts of the container.

    Raises ``KubeApiError`` where retrying does not help: no such pod or container, no permission.
    """
    framing = Framing(Origin(str(container), namespace=container.namespace, pod=container.pod))
    rng = rng or Random()  # noqa: S311 - spreads clients, hides nothing
    waits = draw_backoff_seconds(rng, FIRST_PAUSE, LONGEST_PAUSE)
    errors, reached = _ErrorPolicy(container), since
    while True:
        try:
            # The last lines of a container that was restarted are in the log of its previous run.
            for is_previous in (True, False) if since.stamp else (False,):
                async for lines, sinces in _read_connection(client, container, since, framing, is_previous=is_previous):
                    # Lines that framing holds back are not returned yet, so a restart must read them again.
                    returned = len(sinces) - framing.held_lines
                    reached = sinces[returned - 1] if returned > 0 else reached
                    since = sinces[-1]
                    waits = draw_backoff_seconds(rng, FIRST_PAUSE, LONGEST_PAUSE)
                    errors.reset()
                    yield lines, reached
        except KubeApiError as error:
            errors.handle(error, asyncio.get_running_loop().time())
        await asyncio.sleep(next(waits))


class _ErrorPolicy:
    """Decides which errors end the reading; the others are retried, and logged once."""

    def __init__(self, container: PodContainer) -> None:
        self._container = container
        self._has_read = False
        self._refused_since: float | None = None
        self._logged = ""

    def reset(self) -> None:
        self._has_read, self._refused_since, self._logged = True, None, ""

    def handle(self, error: KubeApiError, now: float) -> None:
        """Raise an error that retrying does not solve."""
        if error.status not in _REFUSALS:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        is_refused = self._refused_since is not None and now - self._refused_since >= REFUSED_SECONDS
        is_mistaken = error.status == 400 and any(words in str(error) for words in _MISTAKES)
        if is_refused or is_mistaken or (error.status in _REFUSALS and not self._has_read):
            raise KubeApiError(error.status, f"{self._container}: {error}") from None
        if str(error) != self._logged:
            log.warning("%s: %s; retrying, to continue after the last line", self._container, error)
            self._logged = str(error)


async def _read_connection(
    client: Client, container: PodContainer, since: Since, framing: Framing, *, is_previous: bool
) -> AsyncIterator[tuple[Lines, list[Since]]]:
    """Read lines, and the position after each line that was fed to framing."""
    try:
        async with client.log(
            container.path, silence_seconds=SILENCE_SECONDS, **_query(container, since, is_previous=is_previous)
        ) as parts:
            unread = _UnreadLines(since)
            async for part in parts:
                texts, sinces = unread.take(part)
                framing.origin = framing.origin._replace(reference=unread.moment)
                if texts and (lines := framing.feed(b"".join(texts))):
                    yield lines, sinces
    except KubeApiError as error:
        if not (is_previous and error.status == 400):  # 400: the container was never restarted
            raise


def _query(container: PodContainer, since: Since, *, is_previous: bool) -> dict[str, str | int]:
    query: dict[str, str | int] = {"timestamps": "true"}
    # A container that has ended writes no more, so its log is not followed.
    query["previous" if is_previous else "follow"] = "true"
    if container.container:
        query["container"] = container.container
    if since.stamp:
        query["sinceTime"] = since.whole_second
    return query


class _UnreadLines:
    """Selects the lines of a connection that were not read before; a line without its end is not read."""

    def __init__(self, since: Since) -> None:
        self.since = since
        self.moment = read_time(since.stamp.encode()) or datetime(1970, 1, 1, tzinfo=UTC)
        self._last: Since | None = since if since.stamp else None
        """The last line that was read; None once the connection has passed it."""
        self._repeated = 0
        self._tail = b""

    def take(self, part: bytes) -> tuple[list[bytes], list[Since]]:
        """Take a part of the stream: return complete lines without their time, and the position after each."""
        # A line whose end has not come is not counted, so a lost connection reads it again as a whole.
        *lines, self._tail = (self._tail + part).split(b"\n")
        texts: list[bytes] = []
        sinces: list[Since] = []
        for line in lines:
            if (text := self._take_line(line)) is not None:
                texts.append(text)
                sinces.append(self.since)
        return texts, sinces

    def _take_line(self, line: bytes) -> bytes | None:
        stamp, _, text = line.partition(b" ")
        moment = read_time(stamp)
        # The API server's own messages in the stream (``unable to retrieve container logs``) have no time.
        if moment is None:
            return line + b"\n"
        time = stamp.decode()
        if self._last and self._check_repeated(time, self._last):
            return None
        self.since, self.moment = self.since.advance(time), moment
        return text + b"\n"

    def _check_repeated(self, stamp: str, last: Since) -> bool:
        """Check whether a line was read before; after the last known line all lines are new, whatever their times."""
        if _to_sort_key(stamp) == _to_sort_key(last.stamp):
            self._repeated += 1
            is_read = self._repeated <= last.lines
            if self._repeated >= last.lines:
                self._last = None
            return is_read
        if _to_sort_key(stamp) > _to_sort_key(last.newest):
            self._last = None
            return False
        return True


def _to_sort_key(stamp: str) -> tuple[datetime, str]:
    """Convert to a sort key with nanoseconds, which a ``datetime`` does not have."""
    moment = read_time(stamp.encode()) or datetime(1970, 1, 1, tzinfo=UTC)
    fraction = stamp.partition(".")[2].rstrip("Z").partition("+")[0]
    # Kubernetes drops trailing zeros: .5 and .500000001 compare as text only at equal length.
    return moment, fraction.ljust(9, "0")
