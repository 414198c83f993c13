"""A container's log through the API server, as ``kubectl logs --follow`` gives it, over cuts and restarts.

The server can only be asked for lines since a whole second. So every line is asked for with its time to the nanosecond,
and after a cut those that were read are passed over: all up to the last line, which is known by its time and by how
many lines of that time there were. Where it is missing (the file was rotated) all that are older than the newest line.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from ingest.lines.blocks import Lines, Origin
from ingest.lines.framing import Framing, read_time
from kube.client import Client
from kube.errors import KubeApiError
from process.backoff import backoff_seconds

log = logging.getLogger(__name__)

SILENCE_SECONDS: Final = 300.0
"""A connection that brings nothing for so long is made anew."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 15.0
EARLY: Final = timedelta(seconds=5)
"""What is asked for before the last line."""
REFUSED_SECONDS: Final = 60.0
"""A refusal of what was allowed before is believed after so long: an API server that has just started knows neither
roles nor tokens for a moment, and a pod that is put elsewhere is missing for one."""

_REFUSALS: Final = frozenset((401, 403, 404))
_MISTAKES: Final = ("is not valid for pod", "must be specified for pod")
"""What the API server says of containers that are not there; it answers 400, as for one that has not started yet."""


@dataclass(frozen=True, slots=True)
class PodContainer:
    """Whose log is read."""

    namespace: str
    pod: str
    container: str = ""
    """Empty where the pod has one alone."""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.namespace, self.pod, self.container)))

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}/log"


@dataclass(frozen=True, slots=True)
class Since:
    """The last line that was read: its time as the server wrote it, and how many lines of that time there were."""

    stamp: str = ""
    lines: int = 0
    newest: str = ""
    """The latest time of any line. It is later than the last line's where a clock went back."""

    @classmethod
    def parse(cls, text: str) -> "Since":
        stamp, _, rest = text.partition(" ")
        lines, _, newest = rest.partition(" ")
        newest = newest or stamp
        is_whole = lines.isdigit() and all(read_time(each.encode()) for each in (stamp, newest))
        return cls(stamp, int(lines), newest) if is_whole else cls()

    def __str__(self) -> str:
        said = f"{self.stamp} {self.lines}" if self.stamp else ""
        return said if self.newest == self.stamp else f"{said} {self.newest}"

    def next(self, stamp: str) -> "Since":
        if stamp == self.stamp:
            return Since(stamp, self.lines + 1, self.newest)
        is_newer = not self.newest or _sortable(stamp) > _sortable(self.newest)
        return Since(stamp, 1, stamp if is_newer else self.newest)

    @property
    def whole_second(self) -> str:
        """What the server is asked for: early enough for lines behind the last one whose clock had gone back."""
        moment = read_time(self.stamp.encode()) or datetime(1970, 1, 2, tzinfo=UTC)
        return (moment - EARLY).strftime("%Y-%m-%dT%H:%M:%SZ")


async def follow_pod(
    client: Client, container: PodContainer, since: Since, rng: Random | None = None
) -> AsyncIterator[tuple[Lines, Since]]:
    """The lines of a container's log, for ever: over lost connections, and over restarts of the container.

    Raises ``KubeApiError`` for what coming back later does not mend: no such pod or container, no permission.
    """
    framing = Framing(Origin(str(container), namespace=container.namespace, pod=container.pod))
    rng = rng or Random()  # noqa: S311 - spreads clients, hides nothing
    waits = backoff_seconds(rng, FIRST_PAUSE, LONGEST_PAUSE)
    trouble, reached = _Trouble(container), since
    while True:
        try:
            # What the container said last, before it was started again, is in the log of its previous run.
            for is_previous in (True, False) if since.stamp else (False,):
                async for lines, sinces in _one_connection(client, container, since, framing, is_previous=is_previous):
                    # Of a value of several lines the first are not given out before the last has come.
                    given = len(sinces) - framing.held_lines
                    reached = sinces[given - 1] if given > 0 else reached
                    since = sinces[-1]
                    waits = backoff_seconds(rng, FIRST_PAUSE, LONGEST_PAUSE)
                    trouble.is_over()
                    yield lines, reached
        except KubeApiError as error:
            trouble.note(error, asyncio.get_running_loop().time())
        await asyncio.sleep(next(waits))


class _Trouble:
    """Errors of one container's log: which end the reading, and which are waited out and said once."""

    def __init__(self, container: PodContainer) -> None:
        self._container = container
        self._has_read = False
        self._refused_since: float | None = None
        self._said = ""

    def is_over(self) -> None:
        self._has_read, self._refused_since, self._said = True, None, ""

    def note(self, error: KubeApiError, now: float) -> None:
        """Raises the error where waiting does not mend it."""
        if error.status not in _REFUSALS:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        is_refused = self._refused_since is not None and now - self._refused_since >= REFUSED_SECONDS
        is_mistaken = error.status == 400 and any(words in str(error) for words in _MISTAKES)
        if is_refused or is_mistaken or (error.status in _REFUSALS and not self._has_read):
            raise KubeApiError(error.status, f"{self._container}: {error}") from None
        if str(error) != self._said:
            log.warning("%s: %s; waiting for it, to go on behind the last line", self._container, error)
            self._said = str(error)


async def _one_connection(
    client: Client, container: PodContainer, since: Since, framing: Framing, *, is_previous: bool
) -> AsyncIterator[tuple[Lines, list[Since]]]:
    """Lines, and where to go on behind each that was fed for them."""
    try:
        async with client.log(
            container.path, silence_seconds=SILENCE_SECONDS, **_query(container, since, is_previous=is_previous)
        ) as parts:
            unread = _Unread(since)
            async for part in parts:
                texts, sinces = unread.take(part)
                framing.origin = replace(framing.origin, reference=unread.moment)
                if texts and (lines := framing.feed(b"".join(texts))):
                    yield lines, sinces
    except KubeApiError as error:
        if not (is_previous and error.status == 400):  # it was never started again
            raise


def _query(container: PodContainer, since: Since, *, is_previous: bool) -> dict[str, str | int]:
    said: dict[str, str | int] = {"timestamps": "true"}
    said["previous" if is_previous else "follow"] = "true"
    if container.container:
        said["container"] = container.container
    if since.stamp:
        said["sinceTime"] = since.whole_second
    return said


class _Unread:
    """Of the lines that a connection brings, those that were not read before; a line that is cut off is not read."""

    def __init__(self, since: Since) -> None:
        self.since = since
        self.moment = read_time(since.stamp.encode()) or datetime(1970, 1, 1, tzinfo=UTC)
        self._last: Since | None = since if since.stamp else None
        """The last line that was read, until it has come again."""
        self._seen = 0
        self._rest = b""

    def take(self, part: bytes) -> tuple[list[bytes], list[Since]]:
        """Whole lines without their time, with their ends; and where to go on behind each."""
        *whole, self._rest = (self._rest + part).split(b"\n")
        texts: list[bytes] = []
        sinces: list[Since] = []
        for line in whole:
            if (text := self._new(line)) is not None:
                texts.append(text)
                sinces.append(self.since)
        return texts, sinces

    def _new(self, line: bytes) -> bytes | None:
        stamp, _, text = line.partition(b" ")
        moment = read_time(stamp)
        if moment is None:
            return line + b"\n"
        said = stamp.decode()
        if self._last and self._is_read(said, self._last):
            return None
        self.since, self.moment = self.since.next(said), moment
        return text + b"\n"

    def _is_read(self, stamp: str, last: Since) -> bool:
        """Of a log that is given from before the last line on; behind that all is new, whatever its time."""
        if _sortable(stamp) == _sortable(last.stamp):
            self._seen += 1
            is_read = self._seen <= last.lines
            if self._seen >= last.lines:
                self._last = None
            return is_read
        if _sortable(stamp) > _sortable(last.newest):
            self._last = None
            return False
        return True


def _sortable(stamp: str) -> tuple[datetime, str]:
    """To the nanosecond: a ``datetime`` ends at microseconds."""
    moment = read_time(stamp.encode()) or datetime(1970, 1, 1, tzinfo=UTC)
    fraction = stamp.partition(".")[2].rstrip("Z").partition("+")[0]
    return moment, fraction.ljust(9, "0")
