"""A watch that continues where the one before it has ended."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from cli.client.changes import BOOKMARK, WatchedChange
from cli.client.problems import Problem
from cli.client.transport import Transport

PAUSE_SECONDS: Final = 1.0
"""Pause between the end of a watch and the next one."""


def follow(
    transport: Transport, path: str, query: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
) -> Iterator[WatchedChange | Problem]:
    """Follow every change: where one watch ends, the next one continues.

    Ends only with a problem.
    """
    version = ""
    while True:
        parameters = {**query, "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        if version:
            # What was there before is behind it already.
            parameters.pop("sendInitialEvents", None)
        for change in transport.stream(path, parameters):
            if isinstance(change, Problem):
                yield change
                return
            version = change.version or version
            if change.kind != BOOKMARK:
                yield change
        sleep(PAUSE_SECONDS)
