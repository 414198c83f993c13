"""Parallel JSON arrays as numpy columns, checked while they are converted.

A column type is an ordinary pydantic field type: it takes a list (from JSON) or an array (from a producer) and holds a
one-dimensional array. ``array.array`` does the conversion because it refuses anything that is not an integer of 64
bits, and costs no more than ``numpy.fromiter``, which would silently cut floats.
"""

from array import array
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, WithJsonSchema

_LARGEST: Final = float(np.finfo(np.float32).max)
_ZERO: Final = ord("0")
"""The character of code 0. That of -1, none, is the one before it: ``/``."""
_CODE_BYTES: Final = bytes(range(_ZERO - 1, 128))
"""Characters of one byte that are codes."""
_NO_INTEGERS: Final = np.empty(0, dtype=np.int64)
_SHORT: Final = 40
"""Entries of a short column."""
_BACKSLASH: Final = ord("\\") - _ZERO
"""The code whose character takes two bytes in JSON."""


def _to_int64(values: Any) -> npt.NDArray[np.int64]:
    if isinstance(values, np.ndarray):
        # Unsigned 64 bits and floats are refused: they would wrap around or lose their fraction without an error.
        if values.ndim != 1 or not np.can_cast(values.dtype, np.int64, "safe"):
            raise ValueError(f"a column of integers: not {values.ndim} dimensions of {values.dtype}")
        return values.astype(np.int64, copy=False)
    if not isinstance(values, list):
        raise ValueError("a column is an array of integers")
    if not values:
        return _NO_INTEGERS
    try:
        # A guess from the first value; ``bytes`` refuses the column if a later one is larger. ``type``: True is an int,
        # too.
        looks_small = type(values[0]) is int and 0 <= values[0] < 256
        return _from_bytes(values) if looks_small else _from_int64s(values)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"a column of integers: {error}") from None


def _from_bytes(values: list[Any]) -> npt.NDArray[np.int64]:
    # Most columns hold codes, percents and slots: as bytes they are converted in a third of the time.
    try:
        return np.frombuffer(bytes(values), dtype=np.uint8).astype(np.int64)
    except ValueError:
        return _from_int64s(values)


def _from_int64s(values: list[Any]) -> npt.NDArray[np.int64]:
    return np.frombuffer(array("q", values), dtype=np.int64)


def _read_codes(values: Any) -> npt.NDArray[np.int64]:
    codes = _to_int64(values)
    if find_least(codes) < -1:
        raise ValueError("a code is an index into its table, or -1 for none")
    return codes


def write_code_text(codes: Any) -> str:
    """Write one character for each code, as a ``CodeText``. ``codes``: shape ``(rows,)``, each from -1 to 50,000."""
    characters = (np.asarray(codes, dtype=np.int64) + _ZERO).astype("<u4")
    return characters.tobytes().decode("utf-32-le")


def measure_widest_character(codes: npt.NDArray[Any]) -> int:
    """Return the most bytes that a code of the column takes as a character in JSON; 0 for an empty column."""
    if not codes.size:
        return 0
    largest = find_greatest(codes)
    # A backslash has another one before it. All characters behind it are taken to be as long.
    return max(len(write_code_text([largest]).encode()), 2 if largest >= _BACKSLASH else 1)


def _from_code_text(values: Any) -> npt.NDArray[np.int64]:
    if not isinstance(values, str):
        return _read_codes(values)
    if not values:
        return _NO_INTEGERS
    # Numpy takes as long to look at a few rows as to convert them; most tables have less than 80 entries.
    if values.isascii() and not (characters := values.encode()).translate(None, _CODE_BYTES):
        codes = np.frombuffer(characters, dtype=np.uint8).astype(np.int64)
        codes -= _ZERO
        return codes
    return _read_codes(np.frombuffer(values.encode("utf-32-le"), dtype="<u4").astype(np.int64) - _ZERO)


def _to_float32(values: Any) -> npt.NDArray[np.float32]:
    numbers = values if isinstance(values, np.ndarray) else _to_float64(values)
    if numbers.ndim != 1 or numbers.dtype.kind not in "fiu":
        raise ValueError(f"a column of numbers: not {numbers.ndim} dimensions of {numbers.dtype}")
    # A NaN fails every comparison, so it can't be the maximum of anything within the limit.
    if numbers.size and not np.abs(numbers).max() <= _LARGEST:
        raise ValueError("a column of numbers: one is not a finite 32-bit float")
    return numbers.astype(np.float32, copy=False)


def _to_float64(values: Any) -> npt.NDArray[np.float64]:
    if not isinstance(values, list):
        raise ValueError("a column is an array of numbers")
    try:
        return np.frombuffer(array("d", values), dtype=np.float64)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"a column of numbers: {error}") from None


_INTEGERS = {"type": "array", "items": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}}
_CODES = {"type": "array", "items": {"type": "integer", "minimum": -1}}
_CODE_TEXT = {"type": "string"}
_NUMBERS = {"type": "array", "items": {"type": "number"}}

Integers = Annotated[npt.NDArray[np.int64], BeforeValidator(_to_int64), WithJsonSchema(_INTEGERS)]
"""A column of 64-bit integers, shape ``(rows,)``."""

Codes = Annotated[npt.NDArray[np.int64], BeforeValidator(_read_codes), WithJsonSchema(_CODES)]
"""A column of indices into a table that stands in the same event, shape ``(rows,)``; -1 is none."""

CodeText = Annotated[npt.NDArray[np.int64], BeforeValidator(_from_code_text), WithJsonSchema(_CODE_TEXT)]
"""``Codes`` of a small table, which JSON holds as a text with a character for each row: ``0`` is the table's first
entry, ``1`` the second, and so on by code point; ``/`` is none. A text is read in a fifth of the time that an array of
numbers takes. Producers give codes, as a list or an array."""

Floats = Annotated[npt.NDArray[np.float32], BeforeValidator(_to_float32), WithJsonSchema(_NUMBERS)]
"""A column of 32-bit floats, shape ``(rows,)``. JSON holds the shortest text that gives the same float back."""


def find_least(column: npt.NDArray[np.int64]) -> int:
    """Return the least number of a column; 0 for an empty one."""
    # Numpy takes five times as long to begin with a column as Python takes for all of a short one.
    return int(column.min()) if column.size > _SHORT else min(column.tolist(), default=0)


def find_greatest(column: npt.NDArray[np.int64]) -> int:
    """Return the greatest number of a column; 0 for an empty one."""
    return int(column.max()) if column.size > _SHORT else max(column.tolist(), default=0)


def check_lengths(columns: dict[str, Any], length: int) -> None:
    """Raise ``ValueError`` naming the first column that does not have ``length`` entries."""
    for name, column in columns.items():
        if len(column) != length:
            raise ValueError(f"column {name} has {len(column)} entries where {length} are expected")


def check_codes(columns: dict[str, tuple[npt.NDArray[np.int64], int]]) -> None:
    """Raise ``ValueError`` naming the first column that points past the end of its table.

    ``columns`` maps a name to the codes and the length of their table.
    """
    for name, (codes, size) in columns.items():
        if codes.size and (greatest := find_greatest(codes)) >= size:
            raise ValueError(f"column {name} points at entry {greatest} of a table of {size}")
