"""The interface of both transports."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from cli.client.changes import WatchedChange
from cli.client.problems import Problem, Unreachable
from schemas.json_types import Json

Query = Mapping[str, str]
NO_QUERY: Final[Query] = {}
TIMEOUT_SECONDS: Final = 60
"""Limit for an answer; a simulation of many pods takes longest."""


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
