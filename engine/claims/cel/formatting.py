"""The method ``format`` of texts."""

from collections.abc import Callable, Iterator
from typing import Final

from engine.claims.cel.arithmetic import check_size
from engine.claims.cel.conversions import to_string
from engine.claims.cel.values import Duration, EvaluationError, MapValue, Timestamp, Uint, Value, name_type

_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 1000
_MALFORMED_PRECISION: Final = "could not parse formatting clause: error while parsing precision"
_SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})

STRING: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps, was given {}"
)
DECIMAL: Final = "decimal clause can only be used on integers, was given {}"
FIXED: Final = "fixed-point clause can only be used on doubles, was given {}"
SCIENTIFIC: Final = "scientific clause can only be used on doubles, was given {}"
BINARY: Final = "only integers and bools can be formatted as binary, was given {}"
HEX: Final = "only integers, byte buffers, and strings can be formatted as hex, was given {}"
OCTAL: Final = "octal clause can only be used on integers, was given {}"

REFUSALS: Final = {"s": STRING, "d": DECIMAL, "f": FIXED, "e": SCIENTIFIC, "b": BINARY, "x": HEX, "X": HEX, "o": OCTAL}
"""Errors of CEL for a value of the wrong type, by the letter of the clause."""


class FormattingError(EvaluationError):
    """A malformed format or a value that it does not take. position: of the value, -1 for the format itself."""

    def __init__(self, message: str, position: int = -1) -> None:
        """Hold the message and the position of the value."""
        super().__init__(message)
        self.position = position


Clause = tuple[str, str, int | None]
"""Text in front of a clause, its letter ("" at the end of the format), and its precision."""


def split_format(form: str) -> Iterator[Clause]:
    """Split a format into its clauses; raise FormattingError for a malformed one."""
    start = position = 0
    text = ""
    while (position := form.find("%", start)) >= 0:
        text += form[start:position]
        if form[position + 1 : position + 2] == "%":
            text, start = text + "%", position + 2
            continue
        if position + 1 >= len(form):
            raise FormattingError("unexpected end of string")
        letter, precision, start = _read_clause(form, position + 1)
        yield text, letter, precision
        text = ""
    yield text + form[start:], "", None


def _read_clause(form: str, position: int) -> tuple[str, int | None, int]:
    precision = None
    if form[position] == ".":
        end = position + 1
        while form[end : end + 1].isdigit() and form[end].isascii():
            end += 1
        if end >= len(form):
            raise FormattingError(f"{_MALFORMED_PRECISION}: could not find end of precision specifier")
        if end == position + 1:
            cause = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise FormattingError(f"{_MALFORMED_PRECISION}: {cause}")
        precision = int(form[position + 1 : end])
        if precision > _MAX_PRECISION:
            check_size(precision * _MAX_PRECISION * _MAX_PRECISION)
        position = end
    letter = form[position]
    if letter not in REFUSALS:
        raise FormattingError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    return letter, precision, position + 1


def format_values(form: str, values: tuple[Value, ...]) -> str:
    """Fill values into the clauses of a format."""
    parts: list[str] = []
    for position, (text, letter, precision) in enumerate(split_format(form)):
        parts.append(text)
        if letter:
            if position >= len(values):
                raise FormattingError(f"index {position} out of range")
            parts.append(_format(letter, precision, values[position], position))
        check_size(sum(map(len, parts)))
    return "".join(parts)


def _format(letter: str, precision: int | None, value: Value, position: int) -> str:
    text = _FORMATTERS[letter](value, _DEFAULT_PRECISION if precision is None else precision)
    if text is None:
        refusal = REFUSALS[letter].format(name_type(value))
        raise FormattingError(f"error during formatting: {refusal}", position)
    return text


def _format_text(value: Value, _: int) -> str | None:
    match value:
        case tuple():
            return f"[{', '.join(map(_quote, value))}]"
        case MapValue():
            return "{" + ", ".join(sorted(f"{_quote(key)}:{_quote(entry)}" for key, entry in value.iterate())) + "}"
        case None:
            return "null"
        case _:
            return to_string(value) if name_type(value) in _PRINTED else None


_PRINTED: Final = frozenset(
    {
        "int", "uint", "double", "bool", "string", "bytes", "type", "google.protobuf.Duration",
        "google.protobuf.Timestamp",
    }
)  # fmt: skip


def _quote(value: Value) -> str:
    """Print an element of a list or map."""
    match value:
        case str():
            return _quote_text(value)
        case bytes():
            return "b" + _quote_text(value.decode("utf-8", "replace"))
        case float():
            return f"{value:.6f}" if value - value == 0 else f'"{to_string(value)}"'
        case Duration():
            return f'duration("{to_string(value)}")'
        case Timestamp():
            return f'timestamp("{to_string(value)}")'
        case _:
            text = _format_text(value, 0)
            if text is None:
                raise FormattingError(f"error during formatting: no formatting function for {name_type(value)}")
            return text


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _format_decimal(value: Value, _: int) -> str | None:
    return str(int(value)) if type(value) in (int, Uint) else None


def _format_fixed(value: Value, precision: int) -> str | None:
    number = _read_double(value)
    return None if number is None else f"{number:.{precision}f}"


def _format_scientific(value: Value, precision: int) -> str | None:
    number = _read_double(value)
    return None if number is None else f"{number:.{precision}e}"


def _read_double(value: Value) -> float | None:
    if type(value) is float:
        return float(value)
    return float(value) if type(value) is str and value in _SPECIAL else None


def _format_binary(value: Value, _: int) -> str | None:
    return f"{int(value):b}" if type(value) in (int, Uint, bool) else None


def _format_octal(value: Value, _: int) -> str | None:
    return f"{int(value):o}" if type(value) in (int, Uint) else None


def _format_hex(value: Value, _: int) -> str | None:
    if type(value) in (str, bytes):
        return (value.encode("utf-8", "replace") if type(value) is str else value).hex()
    return f"{int(value):x}" if type(value) in (int, Uint) else None


def _format_upper_hex(value: Value, precision: int) -> str | None:
    text = _format_hex(value, precision)
    return None if text is None else text.upper()


_FORMATTERS: Final[dict[str, Callable[[Value, int], str | None]]] = {
    "s": _format_text,
    "d": _format_decimal,
    "f": _format_fixed,
    "e": _format_scientific,
    "b": _format_binary,
    "o": _format_octal,
    "x": _format_hex,
    "X": _format_upper_hex,
}
