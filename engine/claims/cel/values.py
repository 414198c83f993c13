"""Values of CEL in Python, and CEL's equality and order of them.

Python's bool, int, float, str, bytes and None are CEL's bool, int, double, string, bytes and null; a tuple is a list.
Kubernetes' types are `Quantity`, `Version` and Python's addresses and networks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult

from engine.claims.cel import signatures
from engine.claims.quantity import Quantity
from engine.claims.version import Version

Value: TypeAlias = Any
"""A value of CEL: one of the types of this module's table ``TYPE_NAMES``."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1

Address = IPv4Address | IPv6Address
Network = IPv4Interface | IPv6Interface


class UnjudgedError(ValueError):
    """An expression that Kubernetes may take and that is not judged here; the text is the reason."""


class EvaluationError(Exception):
    """An error of CEL at run time; ``&&`` and ``||`` absorb it where the other side decides."""


class CostError(Exception):
    """An error that ends an evaluation and that nothing absorbs: Kubernetes' limit of cost is exceeded, or it fails."""


class ValueSizeError(Exception):
    """A value that is larger than this judge builds."""


NO_OVERLOAD: Final = "no such overload"


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A moment. nanoseconds: since 1970 in UTC."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """A value that may be absent."""

    value: Value
    has_value: bool


ABSENT: Final = OptionalValue(None, has_value=False)


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL."""

    parts: SplitResult


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """One of Kubernetes' named formats of strings."""

    name: str


MapKey: TypeAlias = "str | tuple[str, int]"
"""A key as Python can look it up: numbers of all types are equal, booleans are no numbers."""


class MapValue:
    """A map. ``default``: a value for every missing key, which the maps of a device's domains have."""

    __slots__ = ("default", "entries")

    def __init__(self, entries: dict[MapKey, tuple[Value, Value]], default: Value | None = None) -> None:
        """Hold entries: by the key to look up, the key and its value."""
        self.entries = entries
        self.default = default

    def get(self, key: Value) -> OptionalValue:
        """Return the value of a key, or the default."""
        entry = self.entries.get(to_map_key(key))
        if entry is not None:
            return OptionalValue(entry[1], has_value=True)
        return ABSENT if self.default is None else OptionalValue(self.default, has_value=True)

    def contains(self, key: Value) -> bool:
        """Return whether a key has an entry of its own."""
        return to_map_key(key) in self.entries

    def iterate(self) -> Iterator[tuple[Value, Value]]:
        """Yield keys with their values."""
        return iter(self.entries.values())

    def __len__(self) -> int:
        """Count the entries."""
        return len(self.entries)


def to_map_key(value: Value) -> MapKey:
    """Turn a value into a key of `MapValue.entries`."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return ("bool", int(value))
    if kind is int or kind is Uint or (kind is float and value.is_integer()):
        return ("number", int(value))
    return ("other", id(value))


TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    MapValue: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
    Quantity: signatures.QUANTITY,
    Version: signatures.VERSION,
    IPv4Address: signatures.IP,
    IPv6Address: signatures.IP,
    IPv4Interface: signatures.CIDR,
    IPv6Interface: signatures.CIDR,
    Url: signatures.URL,
    NamedFormat: signatures.FORMAT,
}

NUMBERS: Final = frozenset({int, Uint, float})
SIZED: Final = frozenset({str, bytes, tuple, MapValue})
ORDERED: Final = NUMBERS | {bool, str, bytes, Duration, Timestamp}
"""Types that CEL orders."""
_STRICT: Final = frozenset(
    {Quantity, Version, IPv4Address, IPv6Address, IPv4Interface, IPv6Interface, Url, NamedFormat}
)
"""Types of Kubernetes, which do not compare with other types."""


def wrap_int(value: int) -> int:
    """Bring a number into the range of int as a conversion of Go does: it wraps around."""
    return value if value <= INT_MAX else value - 2**64


def name_type(value: Value) -> str:
    """Name the type of a value as CEL does."""
    return TYPE_NAMES.get(type(value), "dyn")


def measure(value: Value) -> int:
    """Measure a value as CEL's costs do: characters, bytes, elements; 1 for anything else."""
    kind = type(value)
    if kind in SIZED:
        return len(value)
    if kind is OptionalValue and value.has_value:
        return measure(value.value)
    return 1


def is_equal(left: Value, right: Value) -> bool:
    """Compare two values; raise EvaluationError where Kubernetes' types meet others."""
    first, second = type(left), type(right)
    if first in NUMBERS and second in NUMBERS:
        return bool(left == right)
    if first is tuple or first is MapValue:
        return _is_equal_collection(left, right)
    if first in _STRICT:
        return _is_equal_strictly(left, right)
    if first is OptionalValue and second is OptionalValue:
        return left.has_value == right.has_value and (not left.has_value or is_equal(left.value, right.value))
    return first is second and bool(left == right)


def _is_equal_collection(left: Value, right: Value) -> bool:
    if type(left) is not type(right) or len(left) != len(right):
        return False
    if type(left) is tuple:
        return all(is_equal(mine, theirs) for mine, theirs in zip(left, right, strict=True))
    for key, value in left.iterate():
        other = right.get(key)
        if not other.has_value or not is_equal(value, other.value):
            return False
    return True


def _is_equal_strictly(left: Value, right: Value) -> bool:
    if TYPE_NAMES[type(left)] != TYPE_NAMES.get(type(right)):
        raise EvaluationError(NO_OVERLOAD)
    if type(left) is Quantity:
        if right.is_computed:
            raise EvaluationError(NO_OVERLOAD)
        return bool(left.nano == right.nano)
    if type(left) is Version:
        return bool(left.compare(right) == 0)
    return bool(left == right)


def compare(left: Value, right: Value) -> int:
    """Order two values: -1, 0 or 1; raise EvaluationError if CEL does not order them."""
    first, second = type(left), type(right)
    if first in NUMBERS and second in NUMBERS:
        if left != left or right != right:
            raise EvaluationError("NaN values cannot be ordered")
    elif first is not second or first not in ORDERED:
        raise EvaluationError(NO_OVERLOAD)
    if first in (Duration, Timestamp):
        left, right = left.nanoseconds, right.nanoseconds
    elif first is str:
        left, right = left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    return int(left > right) - int(left < right)


def to_text(value: Value) -> str:
    """Print a value for a person, as it is written in an expression."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case str():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(map(to_text, value))}]"
        case MapValue():
            return "{" + ", ".join(f"{to_text(key)}: {to_text(entry)}" for key, entry in value.iterate()) + "}"
        case Duration():
            return f"{value.nanoseconds / 1e9:g}s"
        case OptionalValue():
            return to_text(value.value) if value.has_value else "absent"
        case TypeValue() | NamedFormat():
            return value.name
        case Url():
            return value.parts.geturl()
        case Timestamp():
            return f"{value.nanoseconds / 1e9:g}"
        case float():
            return f"{value:g}"
        case _:
            return str(value)
