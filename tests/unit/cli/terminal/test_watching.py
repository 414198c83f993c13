import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from cli.client.problems import Problem, WrongRequest
from cli.client.transport import NO_QUERY, WatchedChange
from cli.terminal.watching import follow
from schemas.json_types import Json


def a_change(kind: str, version: str) -> WatchedChange:
    return WatchedChange(kind, {"metadata": {"resourceVersion": version}})


class Streams:
    """Gives one stream after the other, and notes from where each was asked for."""

    def __init__(self, *streams: list[WatchedChange | Problem]) -> None:
        self.streams, self.queries = iter(streams), list[str]()

    def stream(self, path: str, query: Mapping[str, str] = NO_QUERY) -> Iterator[WatchedChange | Problem]:
        self.queries.append(query["resourceVersion"])
        return iter(next(self.streams))

    def get(self, *_: Any) -> Json | Problem:
        raise NotImplementedError

    def get_text(self, *_: Any) -> bytes | Problem:
        raise NotImplementedError

    post = get

    def get_namespace(self) -> str:
        return ""


def test_a_watch_continues_where_the_one_before_ended() -> None:
    first: list[WatchedChange | Problem] = [a_change("ADDED", "1"), a_change("BOOKMARK", "4")]
    streams = Streams(first, [], [a_change("DELETED", "5"), WrongRequest("gone")])
    pauses: list[float] = []
    changes = list(itertools.islice(follow(streams, "/pending", {}, pauses.append), 10))
    assert changes == [a_change("ADDED", "1"), a_change("DELETED", "5"), WrongRequest("gone")]
    assert streams.queries == ["", "4", "4"]
    assert len(pauses) == 2
