"""Reading a record's columns straight into numpy, without a Python object per number.

simdjson checks the JSON and lays arrays of numbers out as they are in memory: a record is read in less than half the
time. Everything that it can't read, and everything that is wrong, is left to the reader in ``records``: both accept the
same records, and only that one words a refusal.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import orjson
import simdjson
from pydantic import ValidationError

from schemas.events.base import Model
from schemas.events.columns import Column

M = TypeVar("M", bound=Model)

_NESTED: Final = (dict, list)
_DTYPES: Final[dict[str, Any]] = {"i": np.int64, "d": np.float64}


class _ThreadLocalParser(threading.local):
    """A parser per thread: it reuses its memory, and refuses to parse while an earlier document is still referenced."""

    def __init__(self) -> None:
        self.parser = simdjson.Parser()


_local: Final = _ThreadLocalParser()


def read_columns(kind: type[M], value: bytes) -> M | None:
    """The event; None where ``records`` has to decide."""
    if not value.startswith(b"{"):  # simdjson would pass over a byte order mark
        return None
    try:
        fields = _fields(kind, value)
        return kind.model_validate(fields) if fields else None
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError, RuntimeError):
        return None


def _fields(kind: type[Model], value: bytes) -> dict[str, Any] | None:
    document = _local.parser.parse(value)
    if not isinstance(document, simdjson.Object):
        return None
    names = list(document.keys())
    if len(names) != len(set(names)):  # simdjson takes the first of two equal names, other readers the last
        return None
    # ``document[name]`` is a view into the parser's memory; every value is copied out before the next parse.
    readers = _columns(kind)
    fields = {name: readers.get(name, _plain)(document[name]) for name in names}
    # A column within a column would be laid out flat. A bracket that is written as an escape is no list, and is written
    # as a bracket below.
    if b"\\" in value and b"\\u005" in value:
        return None
    lists = len(readers.keys() & fields.keys()) + sum(_lists(fields[name]) for name in names if name not in readers)
    return fields if _brackets(value) == lists else None


def _brackets(value: bytes) -> int:
    # A third of the time of bytes.count.
    return int(np.count_nonzero(np.frombuffer(value, np.uint8) == ord("[")))


def _lists(value: Any) -> int:
    """How many brackets open in the JSON of ``value``, but for those within the texts of a list of texts."""
    # Names are counted as one list: to write thousands of them again would cost more than the rare detour.
    if isinstance(value, list) and (not value or isinstance(value[0], str)):
        return 1
    return orjson.dumps(value).count(b"[") if isinstance(value, _NESTED) else 0


@cache
def _columns(kind: type[Model]) -> dict[str, Callable[[Any], Any]]:
    """A reader per column of a model: simdjson's array to a numpy array."""
    return {
        name: _column(each.of_type)
        for name, field in kind.model_fields.items()
        for each in field.metadata
        if isinstance(each, Column)
    }


def _column(of_type: str) -> Callable[[Any], npt.NDArray[Any]]:
    dtype = _DTYPES[of_type]
    # ``as_buffer`` raises for a mixed or wrong type (1.5 among integers); the caller then leaves the record to the slow
    # reader.
    return lambda array: np.frombuffer(array.as_buffer(of_type=of_type), dtype)


def _plain(value: Any) -> Any:
    if isinstance(value, simdjson.Array):
        return value.as_list()
    return value.as_dict() if isinstance(value, simdjson.Object) else value


def has_columns(kind: type[Model]) -> bool:
    return bool(_columns(kind))
