"""Namespaces with a record, in all clusters: the names by which answers are redacted."""

from collections.abc import Iterable
from typing import Final

MAX_NAMESPACES: Final = 60_000
"""Maximum number of namespaces, some megabytes of names."""


class KnownNamespaces:
    """Namespaces by name. They are never removed: texts name a namespace long after its end."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    @property
    def revision(self) -> int:
        """Number that changes with every new namespace."""
        return len(self.names)

    def add(self, names: Iterable[str]) -> None:
        if len(self.names) < MAX_NAMESPACES:
            self.names.update(filter(None, names))
