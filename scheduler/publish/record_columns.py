"""What records about devices and nodes share: columns as JSON, and how many bytes they take at most."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from scheduler.judge.decision import Decision
from schemas.codec.records import MAX_VALUE_BYTES, encode_value
from schemas.events import NO_STATE

Ints = NDArray[np.int64]
T = TypeVar("T")

NAME_JSON: Final = attrgetter("name_json")
INT64_MAX: Final = 2**63 - 1

_SLACK_BYTES: Final = 128
"""For brackets, and for a part number with more digits than in the empty record."""


class NodeNames:
    """The names of nodes as JSON, made once for all records about a decision; sizes: bytes of each, shape (n,)."""

    def __init__(self, json: list[bytes], sizes: Ints) -> None:
        self.json, self.sizes = json, sizes

    @classmethod
    def of(cls, decision: Decision) -> "NodeNames":
        """Those of all offered nodes."""
        json = (
            # Where every node is registered, no Python code runs per node.
            list(map(NAME_JSON, decision.fragments))
            if (decision.revision != NO_STATE).all()
            else [
                fragment.name_json if fragment else json_text(name)
                for name, fragment in zip(decision.node_names, decision.fragments, strict=True)
            ]
        )
        return cls(json, np.fromiter(map(len, json), np.int64, len(json)))

    def only(self, nodes: Ints) -> "NodeNames":
        """Those at these positions, each at most once and in their order."""
        if len(nodes) == len(self.json):
            return self
        return NodeNames(list(map(self.json.__getitem__, nodes.tolist())), self.sizes[nodes])


def column_budget(once: Mapping[str, Any]) -> int:
    """Bytes that a record has left for its columns. once: all its other fields. One node alone may take more."""
    return max(MAX_VALUE_BYTES - len(encode_value(dict(once))) - _SLACK_BYTES, 1)


def json_text(text: str) -> bytes:
    """The text as a JSON string with its quotes."""
    encoded: bytes = orjson.dumps(text)
    return encoded


def json_array(parts: Sequence[bytes]) -> orjson.Fragment:
    """A JSON array of values that are JSON already; orjson copies it into the record without parsing it."""
    return orjson.Fragment(b"[" + b",".join(parts) + b"]")


def widest(column: NDArray[Any]) -> int:
    """Characters of the longest number in the column, and a comma; 0 for an empty column."""
    if not column.size:
        return 0
    # The longest text is that of the largest number, or with its sign that of the smallest.
    return max(len(str(column.min())), len(str(column.max()))) + 1


def code_table(entries: Sequence[T], column: NDArray[Any]) -> tuple[list[T], Ints]:
    """The entries that occur in the column, and the column as indices into them.

    entries: what each number in `column` stands for.
    """
    # bincount, where np.unique would sort a column of 40,000 small numbers.
    used = np.flatnonzero(np.bincount(column, minlength=len(entries)))
    positions = np.zeros(len(entries), np.int64)
    positions[used] = np.arange(len(used))
    return [entries[code] for code in used.tolist()], positions[column]
