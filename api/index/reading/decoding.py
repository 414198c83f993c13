"""Decoding of documents of the index, with an error that names an unreadable one. Pure."""

from collections.abc import Callable
from typing import TypeVar

from api.http.errors import to_unreadable_error
from schemas.codec.records import Rejected
from schemas.json_types import Json

T = TypeVar("T")


def decode_document(decode: Callable[[Json], T | Rejected], source: Json, document_id: str) -> T:
    """Decode the source of a document. Raises ``UnreadableError``, which names the document, if it is rejected."""
    decoded = decode(source)
    if isinstance(decoded, Rejected):
        raise to_unreadable_error(document_id, str(decoded))
    return decoded
