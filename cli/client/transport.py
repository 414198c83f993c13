"""The interface of both transports."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from cli.client.problems import Problem, Unreachable, to_problem
from schemas.json_types import Json

Query = Mapping[str, str]
NO_QUERY: Final[Query] = {}
TIMEOUT_SECONDS: Final = 60
"""Limit for an answer; a simulation of many pods takes longest."""
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


class Transport(Protocol):
    """Asks the API. Paths are below ``/api/v1``, built by ``cli.client.requests``."""

    def get(self, path: str, query: Query = NO_QUERY) -> Json | Problem:
        """Get an answer in JSON."""
        ...

    def get_text(self, path: str, query: Query = NO_QUERY) -> bytes | Problem:
        """Get an answer that is not JSON."""
        ...

    def post(self, path: str, body: bytes, query: Query = NO_QUERY) -> Json | Problem:
        """Post a body, JSON or YAML, and return the answer."""
        ...

    def stream(self, path: str, query: Query = NO_QUERY) -> Iterator[WatchedChange | Problem]:
        """Stream the changes of one watch as they come; it ends after a problem."""
        ...

    def get_namespace(self) -> str:
        """Get the namespace of names that have none."""
        ...


def read_json(body: bytes, server: str) -> Json | Problem:
    """Parse an answer; a problem if it is not a JSON object, for example a proxy's login page."""
    import json

    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    return Unreachable(f"{server} answers something else than schedulerlog's API", "Is it the right address?")
