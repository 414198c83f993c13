"""Saved objects of OpenSearch Dashboards 3.x as values. Pure.

The versions and the lists of attributes are those of Dashboards 3.3: an attribute that is not listed, or a version that
is higher, makes the import of the object fail.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from schemas.json_types import Json

# The numbers are those of the 7.10 that Dashboards was made from.
MIGRATION_VERSIONS: Final = {
    "index-pattern": "7.6.0",
    "search": "7.9.3",
    "visualization": "7.10.0",
    "dashboard": "7.9.3",
}
_SOURCE: Final = "kibanaSavedObjectMeta"
_INDEX: Final = f"{_SOURCE}.searchSourceJSON.index"


@dataclass(frozen=True, slots=True)
class Reference:
    """Another object that an object needs; ``name`` stands in the attributes instead of its id."""

    name: str
    type: str
    id: str


@dataclass(frozen=True, slots=True)
class SavedObject:
    type: str
    id: str
    attributes: Json
    references: tuple[Reference, ...] = ()

    def line(self) -> bytes:
        """Write the object's line of an NDJSON file, without the end of the line."""
        return orjson.dumps(
            {
                "type": self.type,
                "id": self.id,
                "attributes": self.attributes,
                "references": self.references,
                "migrationVersion": {self.type: MIGRATION_VERSIONS[self.type]},
            }
        )


def ndjson(objects: Iterable[SavedObject]) -> bytes:
    """Write a file for the import."""
    return b"".join(object_.line() + b"\n" for object_ in objects)


def text(value: object) -> str:
    """Write JSON in a string, as attributes hold it."""
    return orjson.dumps(value).decode()


def search_source(query: str, index_pattern: str | None, **more: Any) -> tuple[Json, tuple[Reference, ...]]:
    """Build the attribute that holds the search, and its reference. ``query`` is in Lucene's syntax, empty for all."""
    source: Json = {"query": {"query": query, "language": "lucene"}, "filter": []} | more
    if index_pattern is None:
        return {_SOURCE: {"searchSourceJSON": text(source)}}, ()
    # The reference must have this name: with any other one the import succeeds and the panel shows an error.
    source["indexRefName"] = _INDEX
    return {_SOURCE: {"searchSourceJSON": text(source)}}, (Reference(_INDEX, "index-pattern", index_pattern),)
