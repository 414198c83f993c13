"""The changes of a watch: a line of JSON each, as Kubernetes writes them (docs/api.md)."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from cli.client.problems import Problem, Unreachable, to_problem

BOOKMARK: Final = "BOOKMARK"
_ERROR: Final = "ERROR"


class WatchedChange(NamedTuple):
    kind: str
    """``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK``."""
    object: dict[str, Any]

    @property
    def version(self) -> str:
        """The position from which a watch continues after this change."""
        return str(self.object.get("metadata", {}).get("resourceVersion", ""))


def parse_changes(lines: Iterable[bytes]) -> Iterator[WatchedChange | Problem]:
    """Parse the changes of a stream, which may end with the API's problem; drops an incomplete last line."""
    for line in lines:
        if not line.endswith(b"\n"):
            return
        try:
            event = json.loads(line)
            kind, fields = str(event["type"]), dict(event["object"])
        except (ValueError, KeyError, TypeError):
            yield Unreachable("the answer is not a watch", "The API is older than this command, or it is none.")
            return
        if kind == _ERROR:
            yield to_problem(int(fields.get("code", 500)), str(fields.get("message", "the watch has ended")))
            return
        yield WatchedChange(kind, fields)
