"""Reading of Kubernetes objects by kubectl, which knows the user's kubeconfig, login plugins and proxies."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable
from engine.snapshot.needed_kinds import API_GROUPS, GroupVersions, ListedKind, parse_versions
from schemas.json_types import Json

PAGE: Final = 2_000
"""Objects of a page: pages are read one after the other, and each costs a way to the API server and back."""
MAX_PAGES: Final = 50
"""Limit of 100,000 objects of a kind."""
_AT_ONCE: Final = 8

FetchRaw = Callable[[str], bytes | Problem]
"""Gets the answer of the API server to a path, as ``kubectl get --raw`` does."""


@dataclass(slots=True)
class ReadObjects:
    """Objects that were read, and the problems of the kinds that were not, or not in full."""

    objects: list[Json] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)
    """By kind. A kind that the cluster does not have is no problem: it has no objects."""

    def add(self, other: "ReadObjects") -> None:
        """Add what another reading brought."""
        self.objects += other.objects
        self.problems |= other.problems


class ObjectReader:
    """Reads objects by their paths."""

    def __init__(self, fetch: FetchRaw, prepare: Callable[[], None] = lambda: None) -> None:
        """Create a reader. ``prepare`` is called once, while the API server answers: imports for what follows."""
        self._fetch = fetch
        self._prepare: Callable[[], None] | None = prepare

    def get(self, path: str) -> Json | Problem:
        """Get one object."""
        body = self._fetch(path)
        if isinstance(body, Problem):
            return body
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if isinstance(answer, dict):
            return answer
        return Unreachable("the API server answers something else than JSON", "Does `kubectl get nodes` answer?")

    def get_text(self, path: str) -> bytes | Problem:
        """Get a text, such as the log of a pod."""
        return self._fetch(path)

    def list_kinds(self, listed: Iterable[ListedKind]) -> ReadObjects:
        """List the objects of several kinds at the same time."""
        read = ReadObjects()
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            parts = pool.map(self._list_kind, listed)
            if prepare := self._prepare:
                self._prepare = None
                prepare()
            for part in parts:
                read.add(part)
        finally:
            # After Ctrl-C the lists that are on their way are not waited for.
            pool.shutdown(wait=False, cancel_futures=True)
        return read

    def _list_kind(self, listed: ListedKind) -> ReadObjects:
        read, position = ReadObjects(), ""
        for _ in range(MAX_PAGES):
            query = {**listed.query, "limit": str(PAGE), **({"continue": position} if position else {})}
            page = self.get(f"{listed.path}?{urlencode(query)}")
            if isinstance(page, Problem):
                if not isinstance(page, NotFound):
                    read.problems[listed.kind] = page
                return read
            read.objects.append(_name_kind(page, listed.kind))
            position = _find_position(page)
            if not position:
                return read
        read.problems[listed.kind] = NotAllowed(f"more than {PAGE * MAX_PAGES:,} objects", "")
        return read


def read_versions(reader: ObjectReader) -> GroupVersions:
    """Read the API groups of the cluster; none if they can't be read."""
    versions = read_known_versions(reader)
    return GroupVersions({}) if isinstance(versions, Problem) else versions


def read_known_versions(reader: ObjectReader) -> GroupVersions | Problem:
    """Read the API groups of the cluster."""
    groups = reader.get(API_GROUPS)
    return groups if isinstance(groups, Problem) else parse_versions(groups)


def _name_kind(page: Json, kind: str) -> Json:
    """Name kind and version of a list, from which its items take theirs."""
    name, _, group = kind.partition(".")
    version = f"{group}/v1" if group else "v1"
    return page if page.get("kind") else {"apiVersion": version, "kind": f"{name}List", **page}


def _find_position(page: Mapping[str, Any]) -> str:
    metadata = page.get("metadata")
    return str(metadata.get("continue") or "") if isinstance(metadata, dict) else ""
