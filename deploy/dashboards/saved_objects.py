"""Saved objects of OpenSearch Dashboards 3.x as values. Pure.

Versions and attributes are those of Dashboards 3.3: with another attribute or a higher version, the import of the
object fails.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from schemas.json_types import Json

# The numbers of release 7.10, from which Dashboards was made.
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
    """Reference to another object; ``name`` is in the attributes instead of its id."""

    name: str
    type: str
    id: str


@dataclass(frozen=True, slots=True)
class SavedObject:
    type: str
    id: str
    attributes: Json
    references: tuple[Reference, ...] = ()

    def to_line(self) -> bytes:
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


def to_ndjson(objects: Iterable[SavedObject]) -> bytes:
    """Convert the objects to a file for the import."""
    return b"".join(object_.to_line() + b"\n" for object_ in objects)


def to_json_text(value: object) -> str:
    """Convert the value to a string of JSON, as attributes hold it."""
    return orjson.dumps(value).decode()


def build_search_source(query: str, index_pattern: str | None, **more: Any) -> tuple[Json, tuple[Reference, ...]]:
    """Build the attribute that holds the search, and its reference. ``query`` is in Lucene's syntax, empty for all."""
    source: Json = {"query": {"query": query, "language": "lucene"}, "filter": []} | more
    if index_pattern is None:
        return {_SOURCE: {"searchSourceJSON": to_json_text(source)}}, ()
    # The reference must have this name: with any other one the import succeeds and the panel shows an error.
    source["indexRefName"] = _INDEX
    return {_SOURCE: {"searchSourceJSON": to_json_text(source)}}, (Reference(_INDEX, "index-pattern", index_pattern),)
