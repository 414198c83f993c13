"""Documents for the index, of which only the name and the version matter."""

from datetime import UTC, datetime
from typing import Any

import orjson

from pipeline.sinks.bulk import Document
from schemas.indices import ATTEMPTS

INDEX = ATTEMPTS.name(datetime(2026, 11, 21, tzinfo=UTC))


def a_document(name: str, version: int | None = 1, **fields: Any) -> Document:
    return Document(INDEX, name, orjson.dumps({"name": name, "version": version} | fields), version, origin=name)
