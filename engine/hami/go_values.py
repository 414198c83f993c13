"""Values as Go's `strconv` and `encoding/json` read them, so that we accept exactly what HAMi accepts.

JSON: keys are compared without regard to case, null counts as absent, unknown keys are ignored, numbers have no
fraction and fit the width of the field in HAMi's struct.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)
UINT32: Final = (0, 2**32 - 1)
UINT64: Final = (0, 2**64 - 1)

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class InvalidValueError(ValueError):
    """A value that Go refuses. place: where it is (`device 3, field devmem`); problem: what to write instead."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place, self.problem = place, problem


def go_integer(text: str, low: int, high: int) -> int | None:
    """What `strconv.ParseInt(text, 10, …)` returns: ASCII digits with an optional sign; None where it fails."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    # ``int`` alone would also accept spaces, underscores and digits of other scripts; a very long text would cost
    # quadratic time.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        return None
    value = int(text)
    return value if low <= value <= high else None


def go_boolean(text: str) -> bool | None:
    """What `strconv.ParseBool` returns; None where it fails."""
    return True if text in _TRUE else False if text in _FALSE else None


def parse_json(text: str) -> Any:
    """Raises `InvalidValueError`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidValueError(f"character {error.pos}", f"is not JSON ({error.msg})") from None


ReadValue = Callable[[Any, str], Any]
"""Returns the checked value of a field; its second argument is the field's place. Raises `InvalidValueError`."""

Fields = Mapping[str, tuple[str, ReadValue]]
"""Key in JSON, in lower case -> our name of the field, and how its value is read."""


def json_fields(item: Any, known: Fields, place: str) -> dict[str, Any]:
    """The known fields of a JSON object, by our names; absent ones are left out."""
    if item is None:
        return {}
    if not isinstance(item, dict):
        raise InvalidValueError(place, f"is {json_kind(item)}, write a JSON object")
    fields: dict[str, Any] = {}
    for key, value in item.items():
        # ``encoding/json`` prefers the exact key and else compares without regard to case; nearly every key is exact.
        field = known.get(key) or known.get(key.lower())
        # Unknown keys are those of a newer HAMi.
        if field and value is not None:
            name, read = field
            fields[name] = read(value, f"{place}, field {key}")
    return fields


def json_array(value: Any, place: str) -> list[Any]:
    """An empty list for null, as Go's nil slice."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidValueError(place, f"is {json_kind(value)}, write a JSON array")
    return value


def json_integer(low: int, high: int) -> Callable[[Any, str], int]:
    """A reader of whole numbers from `low` to `high`."""

    def read(value: Any, place: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValueError(place, f"is {json_kind(value)}, write a whole number")
        if not low <= value <= high:
            raise InvalidValueError(place, f"is {value}, write a number from {low} to {high}")
        return value

    return read


def json_string(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(place, f"is {json_kind(value)}, write a string")
    return value


def json_boolean(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError(place, f"is {json_kind(value)}, write true or false")
    return value


def json_kind(value: Any) -> str:
    """The kind of a JSON value, for error messages."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), f"the number {value!r:.40}")
