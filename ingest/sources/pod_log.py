"""A container's log through the API server, as ``kubectl logs --follow`` gives it, over cuts and restarts.

The server can only be asked for lines since a whole second. So every line is asked for with its time to the nanosecond,
and after a cut those that were read are passed over: all that are older than the last line, and of those with the same
time as many as there were.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from ingest.framing import Framing, read_time
from ingest.lines import Lines, Origin
from kube.backoff import pauses
from kube.client import Client
from kube.errors import ApiError

log = logging.getLogger(__name__)

SILENCE_SECONDS: Final = 300.0
"""A connection that brings nothing for so long is made anew."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 15.0


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

    @classmethod
    def parse(cls, text: str) -> "Since":
        stamp, _, lines = text.partition(" ")
        return cls(stamp, int(lines)) if lines.isdigit() and read_time(stamp.encode()) else cls()

    def __str__(self) -> str:
        return f"{self.stamp} {self.lines}" if self.stamp else ""

    def next(self, stamp: str) -> "Since":
        return replace(self, lines=self.lines + 1) if stamp == self.stamp else Since(stamp, 1)

    @property
    def whole_second(self) -> str:
        """What the server is asked for; a second early, for servers that leave out the second itself."""
        moment = read_time(self.stamp.encode()) or datetime(1970, 1, 2, tzinfo=UTC)
        return (moment - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def follow_pod(
    client: Client, container: PodContainer, since: Since, rng: Random | None = None
) -> AsyncIterator[tuple[Lines, Since]]:
    """The lines of a container's log, for ever: over lost connections, and over restarts of the container.

    Raises ``ApiError`` for what coming back later does not mend: no such pod, no permission.
    """
    framing = Framing(Origin(str(container), namespace=container.namespace, pod=container.pod))
    rng = rng or Random()  # noqa: S311 - spreads clients, hides nothing
    waits = pauses(rng, FIRST_PAUSE, LONGEST_PAUSE)
    while True:
        try:
            # What the container said last, before it was started again, is in the log of its previous run.
            for is_previous in (True, False) if since.stamp else (False,):
                async for lines, reached in _one_connection(client, container, since, framing, is_previous=is_previous):
                    since = reached
                    waits = pauses(rng, FIRST_PAUSE, LONGEST_PAUSE)
                    yield lines, reached
        except ApiError as error:
            if error.status in (401, 403, 404):
                raise
            log.info("%s: %s; going on behind the last line", container, error)
        await asyncio.sleep(next(waits))


async def _one_connection(
    client: Client, container: PodContainer, since: Since, framing: Framing, *, is_previous: bool
) -> AsyncIterator[tuple[Lines, Since]]:
    try:
        async with client.log(
            container.path, silence_seconds=SILENCE_SECONDS, **_query(container, since, is_previous=is_previous)
        ) as parts:
            unread = _Unread(since)
            async for part in parts:
                texts = unread.take(part)
                framing.origin = replace(framing.origin, reference=unread.moment)
                if texts and (lines := framing.feed(b"".join(texts))):
                    yield lines, unread.since
    except ApiError as error:
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
        self._known, self._seen = since, Since()
        self._rest = b""

    def take(self, part: bytes) -> list[bytes]:
        """Whole lines without their time, with their ends."""
        *whole, self._rest = (self._rest + part).split(b"\n")
        return [text for line in whole if (text := self._new(line)) is not None]

    def _new(self, line: bytes) -> bytes | None:
        stamp, _, text = line.partition(b" ")
        moment = read_time(stamp)
        if moment is None:
            return line + b"\n"
        said = stamp.decode()
        if self._known.stamp and self._is_read(said):
            return None
        self.since, self.moment = self.since.next(said), moment
        return text + b"\n"

    def _is_read(self, stamp: str) -> bool:
        """Times of one server have one form: their texts sort as they do, once the zeros at the end are filled up."""
        mine, known = _sortable(stamp), _sortable(self._known.stamp)
        if mine != known:
            return mine < known
        self._seen = self._seen.next(stamp)
        return self._seen.lines <= self._known.lines


def _sortable(stamp: str) -> tuple[datetime, str]:
    """To the nanosecond: a ``datetime`` ends at microseconds."""
    moment = read_time(stamp.encode()) or datetime(1970, 1, 1, tzinfo=UTC)
    fraction = stamp.partition(".")[2].rstrip("Z").partition("+")[0]
    return moment, fraction.ljust(9, "0")
