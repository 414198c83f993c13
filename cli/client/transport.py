"""The interface of both transports."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from cli.client.changes import WatchedChange
from cli.client.problems import Problem, Unreachable
from schemas.json_types import Json

Query = Mapping[str, str]
NO_QUERY: Final[Query] = {}
TIMEOUT_SECONDS: Final = 60
"""How long an answer may take; a simulation of many pods takes longest."""


class Transport(Protocol):
    """Paths are those below ``/api/v1``, as ``cli.client.requests`` makes them."""

    def get(self, path: str, query: Query = NO_QUERY) -> Json | Problem:
        """The answer as JSON."""
        ...

    def text(self, path: str, query: Query = NO_QUERY) -> bytes | Problem:
        """An answer that is not JSON."""
        ...

    def post(self, path: str, body: bytes, query: Query = NO_QUERY) -> Json | Problem:
        """The answer to a body, which is JSON or YAML."""
        ...

    def stream(self, path: str, query: Query = NO_QUERY) -> Iterator[WatchedChange | Problem]:
        """The changes of one watch, as they come; it ends after a problem."""
        ...

    def namespace(self) -> str:
        """The namespace of names that are given without one."""
        ...


def read_json(body: bytes, server: str) -> Json | Problem:
    """The answer; a problem where it is not an object of JSON, as of a proxy's page for logging in."""
    import json

    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    return Unreachable(f"{server} answers something else than schedulerlog's API", "Is it the right address?")
