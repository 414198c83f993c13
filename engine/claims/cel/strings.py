"""Functions of texts: CEL's standard ones and its extension for strings."""

from typing import Final

from engine.claims.cel.arithmetic import check_size
from engine.claims.cel.formatting import format_values
from engine.claims.cel.functions import ANY, Functions, define, index, make_overload, take_list
from engine.claims.cel.patterns import find, find_all, matches
from engine.claims.cel.values import EvaluationError, is_equal

_SPACE: Final = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space as Kubernetes trims it."""
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def pick_character(text: str, position: int) -> str:
    """Return one character; an empty text behind the last one."""
    if not 0 <= position <= len(text):
        raise EvaluationError(f"index out of range: {position}")
    return text[position : position + 1]


def find_part(text: str, part: str, start: int = 0) -> int:
    """Return the position of the first occurrence from a position on, or -1."""
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start) if start < len(text) else -1


def find_last_part(text: str, part: str, start: int | None = None) -> int:
    """Return the position of the last occurrence up to a position, or -1."""
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def find_element(values: tuple[object, ...], value: object) -> int:
    """Return the position of the first equal element, or -1."""
    return next((position for position, element in enumerate(values) if _is_same(element, value)), -1)


def find_last_element(values: tuple[object, ...], value: object) -> int:
    """Return the position of the last equal element, or -1."""
    equal = (position for position in reversed(range(len(values))) if _is_same(values[position], value))
    return next(equal, -1)


def _is_same(left: object, right: object) -> bool:
    try:
        return is_equal(left, right)
    except EvaluationError:
        return False


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """Replace occurrences, up to a limit of them."""
    occurrences = text.count(old) if limit < 0 else min(limit, text.count(old))
    check_size(len(text) + occurrences * max(0, len(new) - len(old)))
    return text.replace(old, new, limit)


def split(text: str, separator: str, limit: int = -1) -> tuple[str, ...]:
    """Split a text, into a limited number of parts; without a separator into characters."""
    if limit == 0:
        return ()
    if separator:
        return tuple(text.split(separator, limit - 1 if limit > 0 else -1))
    characters = list(text)
    if 0 < limit < len(characters):
        characters[limit - 1 :] = ["".join(characters[limit - 1 :])]
    return tuple(characters)


def join(parts: tuple[str, ...], separator: str = "") -> str:
    """Join texts."""
    for part in parts:
        if type(part) is not str:
            raise EvaluationError(f"join: invalid input: {part}")
    check_size(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def cut(text: str, start: int, end: int | None = None) -> str:
    """Return the characters from a position up to another one or the end."""
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if position is not None and not 0 <= position <= len(text):
            raise EvaluationError(f"index out of range: {position}")
    return text[start:end]


def quote(text: str) -> str:
    """Write a text as a literal of CEL."""
    return f'"{"".join(_ESCAPES.get(character, character) for character in text)}"'


STRINGS: Final[Functions] = index(
    define("contains", make_overload(lambda text, part: part in text, str, str), is_terse=True),
    define("startsWith", make_overload(str.startswith, str, str), is_terse=True),
    define("endsWith", make_overload(str.endswith, str, str), is_terse=True),
    define("matches", make_overload(matches, str, str), is_terse=True),
    define("charAt", make_overload(pick_character, str, int)),
    define(
        "indexOf",
        make_overload(find_part, str, str),
        make_overload(find_part, str, str, int),
        make_overload(find_element, take_list(), ANY),
    ),
    define(
        "lastIndexOf",
        make_overload(find_last_part, str, str),
        make_overload(find_last_part, str, str, int),
        make_overload(find_last_element, take_list(), ANY),
    ),
    define("lowerAscii", make_overload(lambda text: text.translate(_LOWER), str)),
    define("upperAscii", make_overload(lambda text: text.translate(_UPPER), str)),
    define("replace", make_overload(replace, str, str, str), make_overload(replace, str, str, str, int)),
    define("split", make_overload(split, str, str), make_overload(split, str, str, int)),
    define("join", make_overload(join, take_list(str)), make_overload(join, take_list(str), str)),
    define("substring", make_overload(cut, str, int), make_overload(cut, str, int, int)),
    define("trim", make_overload(lambda text: text.strip(_SPACE), str)),
    define("format", make_overload(format_values, str, take_list())),
    define("strings.quote", make_overload(quote, str)),
    define("find", make_overload(find, str, str)),
    define("findAll", make_overload(find_all, str, str), make_overload(find_all, str, str, int)),
)
"""Functions by their names."""
