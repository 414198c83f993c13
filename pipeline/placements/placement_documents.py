"""Documents of observations and placements, and what they were made of. Pure."""

from hashlib import blake2b
from typing import NamedTuple

import orjson

from pipeline.placements.subjects import Subject
from pipeline.sinks.bulk import Document, source
from schemas.documents.observations import Observed, observation_document
from schemas.indices import OBSERVATIONS


class DocumentOrigin(NamedTuple):
    """What a document was made of: for a dead letter, and to read the subject again after a conflict."""

    record: object
    subject: Subject


def observation(event: Observed, digest: str, origin: DocumentOrigin) -> Document:
    json = source(observation_document(event, digest))
    # Without a version: an observation never changes, so the index keeps the first document of an id.
    return Document(OBSERVATIONS.name(event.observed_at), event.id, json, None, origin)


def content_digest(document: object) -> bytes:
    """Equal for equal documents: the index may return their fields in another order."""
    return blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
