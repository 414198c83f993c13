"""Columns as JSON, and how many bytes they take at most: the shared part of records about devices and nodes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from schemas.codec.records import MAX_VALUE_BYTES, encode_value

Ints = NDArray[np.int64]
T = TypeVar("T")

_COMMA: Final = ord(",")

INT64_MAX: Final = 2**63 - 1

_SLACK_BYTES: Final = 128
"""Bytes for brackets, and for a part number with more digits than in the empty record."""


class NodeNames:
    """Names of nodes for the records about a decision; sizes: bytes of each as JSON, shape (n,)."""

    def __init__(self, names: Sequence[str], sizes: Ints) -> None:
        self.names, self.sizes = names, sizes

    @classmethod
    def measure(cls, names: Sequence[str]) -> "NodeNames":
        encoded = np.frombuffer(encode_text(names), np.uint8)
        # The bytes between two commas are a name, unless a name holds one; Kubernetes knows no such name.
        ends = np.append(np.flatnonzero(encoded[:-1] == _COMMA), len(encoded) - 1)
        if len(ends) == len(names):
            sizes = np.diff(ends, prepend=0) - 1
        else:
            sizes = np.fromiter((len(encode_text(name)) for name in names), np.int64, len(names))
        return cls(names, sizes)

    def select(self, nodes: Ints) -> "NodeNames":
        """Select the nodes at these positions, each at most once and in their order."""
        if len(nodes) == len(self.names):
            return self
        return NodeNames(list(map(self.names.__getitem__, nodes.tolist())), self.sizes[nodes])


def compute_budget(once: Mapping[str, Any]) -> int:
    """Compute the bytes that a record has left for its columns. once: all its other fields. One node may take more."""
    return max(MAX_VALUE_BYTES - len(encode_value(dict(once))) - _SLACK_BYTES, 1)


def encode_text(texts: str | Sequence[str]) -> bytes:
    """Encode the text, or all of them, as JSON."""
    encoded: bytes = orjson.dumps(texts)
    return encoded


def join_array(parts: Sequence[bytes]) -> orjson.Fragment:
    """Join values that are JSON already to a JSON array; orjson copies it into the record without parsing it."""
    return orjson.Fragment(b"[" + b",".join(parts) + b"]")


def measure_widest(column: NDArray[Any]) -> int:
    """Measure the characters of the longest number in the column, and a comma; 0 for an empty column."""
    if not column.size:
        return 0
    # The longest text is that of the largest number, or with its sign that of the smallest.
    return max(len(str(column.min())), len(str(column.max()))) + 1


def build_code_table(entries: Sequence[T], column: NDArray[Any]) -> tuple[list[T], Ints]:
    """Build the table of the entries that occur in the column, and the column as indices into it.

    entries: what each number in `column` stands for.
    """
    # bincount, where np.unique would sort a column of 40,000 small numbers.
    used = np.flatnonzero(np.bincount(column, minlength=len(entries)))
    positions = np.zeros(len(entries), np.int64)
    positions[used] = np.arange(len(used))
    return [entries[code] for code in used.tolist()], positions[column]
