"""JSON by orjson: it reads a large answer several times as fast as the client's own serializer."""

from typing import Any

import orjson
from opensearchpy.exceptions import SerializationError
from opensearchpy.serializer import JSONSerializer


class OrjsonSerializer(JSONSerializer):  # type: ignore[misc]
    """What is text or bytes already is sent as it is, as with the client's own."""

    def loads(self, s: str | bytes) -> Any:
        """Raises ``SerializationError``."""
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError(s, error) from None

    def dumps(self, data: Any) -> Any:
        """Raises ``SerializationError``."""
        if isinstance(data, str | bytes):
            return data
        try:
            # As text: the client encodes every body itself.
            return orjson.dumps(data).decode()
        except TypeError as error:
            raise SerializationError(data, error) from None
