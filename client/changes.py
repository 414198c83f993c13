"""The changes of a watch: a line of JSON each, as Kubernetes writes them (docs/api.md)."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from client.problems import Problem, Unreachable, problem_of_status

if TYPE_CHECKING:
    from client.transport import Transport

_BOOKMARK: Final = "BOOKMARK"
_ERROR: Final = "ERROR"
PAUSE_SECONDS: Final = 1.0
"""Before a watch that has ended is asked for again."""


class WatchedChange(NamedTuple):
    kind: str
    """``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK``."""
    object: dict[str, Any]

    @property
    def version(self) -> str:
        """Where the watch continues after it."""
        return str(self.object.get("metadata", {}).get("resourceVersion", ""))


def changes(lines: Iterable[bytes]) -> Iterator[WatchedChange | Problem]:
    """The changes of a stream; it ends with a problem where the API ends it so. A line that is cut off is none."""
    for line in lines:
        if not line.endswith(b"\n"):
            return
        try:
            event = json.loads(line)
            kind, found = str(event["type"]), dict(event["object"])
        except (ValueError, KeyError, TypeError):
            yield Unreachable("the answer is not a watch", "The API is older than this command, or it is none.")
            return
        if kind == _ERROR:
            yield problem_of_status(int(found.get("code", 500)), str(found.get("message", "the watch has ended")))
            return
        yield WatchedChange(kind, found)


def follow(
    transport: "Transport", path: str, query: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
) -> Iterator[WatchedChange | Problem]:
    """Every change, also over the ends of single watches: each one continues where the one before ended.

    Ends with a problem alone.
    """
    version = ""
    while True:
        asked = {**query, "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        if version:
            # What was there before is behind it already.
            asked.pop("sendInitialEvents", None)
        for change in transport.stream(path, asked):
            if isinstance(change, Problem):
                yield change
                return
            version = change.version or version
            if change.kind != _BOOKMARK:
                yield change
        sleep(PAUSE_SECONDS)
