"""A watch that continues where the one before it has ended."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from cli.client.changes import BOOKMARK, WatchedChange
from cli.client.problems import Problem
from cli.client.transport import Transport

PAUSE_SECONDS: Final = 1.0
"""Before a watch that has ended is asked for again."""


def follow(
    transport: Transport, path: str, query: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
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
            if change.kind != BOOKMARK:
                yield change
        sleep(PAUSE_SECONDS)
