"""The API if the cluster has it; otherwise another transport, which answers from the cluster itself."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from cli.client.kubectl import INSTALL
from cli.client.problems import NotAllowed, Problem
from cli.client.transport import NO_QUERY, Query, Transport, WatchedChange
from schemas.json_types import Json

_WORKLOAD: Final = re.compile(r"/namespaces/[^/]+/workloads/.+")
"""Answers that only the cluster's objects give."""


@dataclass(slots=True)
class FallbackTransport:
    """Asks ``first`` until it answers that the API is not installed, then ``create_other``'s transport."""

    first: Transport
    has_api: Callable[[], bool]
    """Shows whether the cluster has the API: a user who lacks a right is refused before the API is looked for."""
    create_other: Callable[[], Transport]
    _other: Transport | None = field(default=None, init=False)
    _created: Transport | None = field(default=None, init=False)

    def get(self, path: str, query: Query = NO_QUERY) -> Json | Problem:
        if _WORKLOAD.fullmatch(path):
            return self._create_once().get(path, query)
        answer = self._get_current().get(path, query)
        return self._use_other().get(path, query) if self._is_missing(answer) else answer

    def get_text(self, path: str, query: Query = NO_QUERY) -> bytes | Problem:
        answer = self._get_current().get_text(path, query)
        return self._use_other().get_text(path, query) if self._is_missing(answer) else answer

    def post(self, path: str, body: bytes, query: Query = NO_QUERY) -> Json | Problem:
        answer = self._get_current().post(path, body, query)
        return self._use_other().post(path, body, query) if self._is_missing(answer) else answer

    def stream(self, path: str, query: Query = NO_QUERY) -> Iterator[WatchedChange | Problem]:
        for change in self._get_current().stream(path, query):
            if self._is_missing(change):
                yield from self._use_other().stream(path, query)
                return
            yield change

    def get_namespace(self) -> str:
        return self.first.get_namespace()

    def _get_current(self) -> Transport:
        return self._other or self.first

    def _is_missing(self, answer: object) -> bool:
        if self._other is not None or not isinstance(answer, Problem):
            return False
        return answer.next_step == INSTALL or (isinstance(answer, NotAllowed) and not self.has_api())

    def _use_other(self) -> Transport:
        self._other = self._create_once()
        return self._other

    def _create_once(self) -> Transport:
        self._created = self._created or self.create_other()
        return self._created
