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
    """Value that Go refuses. location: its position (`device 3, field devmem`); problem: what to write instead."""

    def __init__(self, location: str, problem: str) -> None:
        super().__init__(location, problem)
        self.location, self.problem = location, problem


def parse_integer(text: str, low: int, high: int) -> int | None:
    """Parse decimal digits with an optional sign as `strconv.ParseInt(text, 10, …)`; None where that fails."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    # ``int`` alone would also accept spaces, underscores and digits of other scripts; a very long text would cost
    # quadratic time.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        return None
    value = int(text)
    return value if low <= value <= high else None


def parse_boolean(text: str) -> bool | None:
    """Parse as `strconv.ParseBool`; None where that fails."""
    return True if text in _TRUE else False if text in _FALSE else None


def parse_json(text: str) -> Any:
    """Parse a JSON text. Raises `InvalidValueError`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidValueError(f"character {error.pos}", f"is not JSON ({error.msg})") from None


ReadValue = Callable[[Any, str], Any]
"""Reader of a field's value, with the field's location for errors. Raises `InvalidValueError`."""

Fields = Mapping[str, tuple[str, ReadValue]]
"""Key in JSON, in lower case -> our name of the field, and the reader of its value."""


def read_fields(item: Any, readers: Fields, location: str) -> dict[str, Any]:
    """Read the fields of a JSON object that have a reader, by our names; absent and unknown ones are left out."""
    if item is None:
        return {}
    if not isinstance(item, dict):
        raise InvalidValueError(location, f"is {describe_kind(item)}, write a JSON object")
    fields: dict[str, Any] = {}
    for key, value in item.items():
        # ``encoding/json`` prefers the exact key and else compares without regard to case; nearly every key is exact.
        field = readers.get(key) or readers.get(key.lower())
        # Unknown keys are those of a newer HAMi.
        if field and value is not None:
            name, read = field
            fields[name] = read(value, f"{location}, field {key}")
    return fields


def read_array(value: Any, location: str) -> list[Any]:
    """Read an array; null is an empty one, as Go's nil slice."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidValueError(location, f"is {describe_kind(value)}, write a JSON array")
    return value


def make_integer_reader(low: int, high: int) -> Callable[[Any, str], int]:
    """Make a reader of whole numbers from `low` to `high`."""

    def read(value: Any, location: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValueError(location, f"is {describe_kind(value)}, write a whole number")
        if not low <= value <= high:
            raise InvalidValueError(location, f"is {value}, write a number from {low} to {high}")
        return value

    return read


def read_string(value: Any, location: str) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(location, f"is {describe_kind(value)}, write a string")
    return value


def read_boolean(value: Any, location: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError(location, f"is {describe_kind(value)}, write true or false")
    return value


def describe_kind(value: Any) -> str:
    """Describe the kind of a JSON value, for error messages."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), f"the number {value!r:.40}")


def to_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    # Nearly all are dictionaries, which an abstract class recognises at four times the cost.
    return value if isinstance(value, (dict, Mapping)) else {}
