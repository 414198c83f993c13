"""One fact of a recorded answer that is not as ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """node: the node it is about, "" for the whole case. fact: which fact of it."""

    node: str
    fact: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.node or 'case'}, {self.fact}: ours {self.ours}, recorded {self.theirs}"
