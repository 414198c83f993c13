"""Fields of decoded objects, read with their types; every error names the path of the field and the cause."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.snapshot.quantity import QuantityError, read_nano

Object = Mapping[str, Any]
"""A decoded JSON object."""

_EMPTY: Final[dict[str, Any]] = {}
_MAX_QUOTED: Final = 60
_MAX_NAMES: Final = 400
_MAX_BITS: Final = 200
_INT32_MAX: Final = 2**31 - 1


class FieldError(ValueError):
    """A field that does not hold a value that Kubernetes allows."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} {cause}")
        self.path = path
        self.cause = cause


@dataclass(frozen=True, slots=True)
class RejectedObject:
    """An object that a snapshot leaves out, with the field and the cause."""

    kind: str
    namespace: str
    name: str
    path: str
    """Path of the field in the object, such as ``spec.containers[0].resources``; "" for the object itself."""
    cause: str

    def to_sentence(self) -> str:
        """Name the object, the field, the cause and the next step."""
        names = "/".join(part for part in (self.namespace, self.name) if part)
        subject = " ".join(part for part in (self.kind or "object", names) if part)
        location = f"{self.path} " if self.path else ""
        problem = f"{_shorten(subject)}: {_shorten(location)}{self.cause}"
        return f"{problem}. The snapshot leaves it out; correct the object or read it again."


def _shorten(text: str) -> str:
    """Shorten a text of an object to what fits into a sentence, with control characters escaped."""
    cut = text if len(text) <= _MAX_NAMES else f"{text[:_MAX_NAMES]}…"
    return cut if cut.isprintable() else repr(cut)[1:-1]


def quote(value: object) -> str:
    """Quote a value for an error, shortened."""
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)} entries"
    # Python refuses to write integers of thousands of digits.
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, str) and len(value) > _MAX_QUOTED:
        return f"{value[:_MAX_QUOTED]!r}…"
    return repr(value)


def read_mapping(parent: Object, key: str, path: str = "") -> Object:
    """Read a JSON object; an empty one if the field is absent or null."""
    value = parent.get(key)
    if isinstance(value, dict):
        return value
    if value is None:
        return _EMPTY
    raise FieldError(join(path, key), f"is {quote(value)}, not a mapping")


def read_list(parent: Object, key: str, path: str = "") -> Sequence[Any]:
    """Read a list of anything; an empty one if the field is absent or null."""
    value = parent.get(key)
    if isinstance(value, list):
        return value
    if value is None:
        return ()
    raise FieldError(join(path, key), f"is {quote(value)}, not a list")


def read_items(parent: Object, key: str, path: str = "") -> Iterator[tuple[str, Object]]:
    """Yield the objects of a list with the path of each."""
    for index, item in enumerate(read_list(parent, key, path)):
        location = f"{join(path, key)}[{index}]"
        if not isinstance(item, dict):
            raise FieldError(location, f"is {quote(item)}, not a mapping")
        yield location, item


def read_text(parent: Object, key: str, path: str = "") -> str:
    """Read a string; "" if the field is absent or null."""
    value = parent.get(key)
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise FieldError(join(path, key), f"is {quote(value)}, not a string")


def read_texts(parent: Object, key: str, path: str = "") -> tuple[str, ...]:
    """Read a list of strings."""
    values = read_list(parent, key, path)
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise FieldError(f"{join(path, key)}[{index}]", f"is {quote(value)}, not a string")
    return tuple(values)


def read_labels(parent: Object, key: str, path: str = "") -> Mapping[str, str]:
    """Read a mapping from strings to strings."""
    labels = read_mapping(parent, key, path)
    for label, value in labels.items():
        if not isinstance(value, str):
            raise FieldError(f"{join(path, key)}[{label}]", f"is {quote(value)}, not a string")
    return labels


def read_bool(parent: Object, key: str, path: str = "", *, default: bool = False) -> bool:
    """Read a truth value."""
    value = parent.get(key)
    if isinstance(value, bool):
        return value
    if value is None:
        return default
    raise FieldError(join(path, key), f"is {quote(value)}, not true or false")


def read_int32(parent: Object, key: str, path: str = "", *, default: int = 0) -> int:
    """Read a whole number of 32 bits."""
    value = parent.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(join(path, key), f"is {quote(value)}, not a whole number")
    if not -_INT32_MAX - 1 <= value <= _INT32_MAX:
        raise FieldError(join(path, key), "is beyond 32 bits")
    return value


def read_nanos(parent: Object, key: str, path: str = "") -> dict[str, int]:
    """Read a mapping from resources to quantities, in billionths."""
    quantities = read_mapping(parent, key, path)
    try:
        return {resource: read_nano(value) for resource, value in quantities.items()}
    except QuantityError:
        resource, value, cause = _find_error(quantities)
        raise FieldError(f"{join(path, key)}[{resource}]", f"is {quote(value)}, which {cause}") from None


def read_quantity(parent: Object, key: str, path: str = "") -> int | None:
    """Read a quantity in billionths; None if the field is absent or null."""
    value = parent.get(key)
    if value is None:
        return None
    try:
        return read_nano(value)
    except QuantityError as error:
        raise FieldError(join(path, key), f"is {quote(value)}, which {error}") from None


def join(path: str, key: str) -> str:
    """Append a field to a path."""
    return f"{path}.{key}" if path else key


def _find_error(quantities: Object) -> tuple[str, object, str]:
    for resource, value in quantities.items():
        try:
            read_nano(value)
        except QuantityError as error:
            return resource, value, str(error)
    raise AssertionError("called without a malformed quantity")
