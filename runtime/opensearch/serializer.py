"""JSON by orjson: it reads a large answer several times as fast as the client's own serializer."""

from typing import Any

import orjson
from opensearchpy.exceptions import SerializationError
from opensearchpy.serializer import JSONSerializer


class OrjsonSerializer(JSONSerializer):  # type: ignore[misc]
    """Serializer with orjson. It sends texts and bytes unchanged, as the client's own does."""

    def loads(self, s: str | bytes) -> Any:
        """Parse JSON. Raises ``SerializationError``."""
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError(s, error) from None

    def dumps(self, data: Any) -> Any:
        """Serialize to JSON. Raises ``SerializationError``."""
        if isinstance(data, str | bytes):
            return data
        try:
            # As text: the client encodes every body itself.
            return orjson.dumps(data).decode()
        except TypeError as error:
            raise SerializationError(data, error) from None
