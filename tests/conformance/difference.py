"""One fact of a recorded answer that is not as ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """node: the node it is about, "" for the whole case. about: which fact."""

    node: str
    about: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.node or 'case'}, {self.about}: ours {self.ours}, HAMi's {self.theirs}"
