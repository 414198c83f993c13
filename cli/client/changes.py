"""The changes of a watch: a line of JSON each, as Kubernetes writes them (docs/api.md)."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from cli.client.problems import Problem, Unreachable, problem_of_status

BOOKMARK: Final = "BOOKMARK"
_ERROR: Final = "ERROR"


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
