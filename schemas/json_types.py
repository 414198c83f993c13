"""Types of decoded JSON."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
"""JSON object: a decoded body, a document of the index, an object of the API server."""

JsonView = Mapping[str, Any]
"""JSON object that its reader does not change."""
