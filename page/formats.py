"""How the page writes times, durations, amounts and names. The filters of the templates."""

import re
import unicodedata
from datetime import UTC, datetime
from json import JSONDecoder
from typing import Any, Final

from markupsafe import Markup, escape

from page.views import amounts

_UNITS: Final = (86_400, 3600, 60, 1)
_UNIT_NAMES: Final = {"en": ("d", "h", "min", "s"), "zh": ("天", "小时", "分", "秒")}
_AGO: Final = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_INERT: Final = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Categories of characters that no text of the page needs: controls, marks of direction, halves of pairs."""
_KEPT: Final = "\n\t"
_UNIT: Final = re.compile(r"(\d) (%|MiB|min|ms|s|h)(?![\w-])", re.ASCII)
_SUSPECT: Final = re.compile(r"[^\n\t\x20-\x7e\xa1-\xac\xae-\u05ff\u3000-\u9fff\uac00-\ud7a3\uff01-\uffee]")
"""What may be one of them; nearly no text has any, so that the categories are rarely asked."""


def visible(value: Any) -> Any:
    """Text in which escape codes and marks of direction are written out as ``\\u202e``: they change nothing then.

    Every value that a template prints passes here.
    """
    if isinstance(value, Markup) or not isinstance(value, str) or not _SUSPECT.search(value):
        return value
    return _SUSPECT.sub(_written_out, value)


def _written_out(found: "re.Match[str]") -> str:
    character = found[0]
    if unicodedata.category(character) not in _INERT or character in _KEPT:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def ticks(text: str) -> Markup:
    """Escaped text: what stands between backquotes becomes ``<code>``; no line ends between a number and its unit."""
    parts = visible(text).split("`")
    # A backquote without its other half is one like every other character.
    if len(parts) % 2 == 0:
        return escape(_units_kept(visible(text)))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if number % 2 else _units_kept(part) for number, part in enumerate(parts))


def _units_kept(text: str) -> str:
    return _UNIT.sub("\\1\u00a0\\2", text)


def moment(text: str | datetime | None) -> Markup:
    """A time element: to the second in UTC; its ``datetime`` has all that is known."""
    if not text:
        return Markup("–")
    exact = text if isinstance(text, str) else text.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Markup('<time datetime="{}">{}</time>').format(visible(exact), visible(to_second(exact)))


def to_second(text: str) -> str:
    """The time in UTC to the second; a text that holds none as it is."""
    try:
        return parsed(text).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return text


def parsed(text: str) -> datetime:
    """The time, in UTC. Raises ``ValueError``."""
    return datetime.fromisoformat(text).astimezone(UTC)


def duration(seconds: float | None, language: str = "en") -> str:
    """The two greatest units: ``3 h 12 min``; a dash where it is not known."""
    if seconds is None:
        return "–"
    rest = max(0, round(seconds))
    parts: list[str] = []
    for name, size in zip(_UNIT_NAMES[language], _UNITS, strict=True):
        amount, rest = divmod(rest, size)
        if amount or (size == 1 and not parts):
            parts.append(f"{amount} {name}")
    return " ".join(parts[:2])


def since(text: str | None, now: datetime, language: str = "en") -> str:
    """How long ago; a dash where it is not known."""
    try:
        return duration((now - parsed(text)).total_seconds(), language) if text else "–"
    except ValueError:
        return "–"


def span(text: str, language: str = "en") -> str:
    """``2h``, as a filter takes it, in words; empty for anything else, which is a time."""
    if not (found := _AGO.fullmatch(text)):
        return ""
    return duration(int(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]], language)


def score(value: float) -> str:
    """With two digits behind the point, whatever they are: the points of a column stand below each other."""
    return f"{value:.2f}"


def amount(value: float | None, unit: str = "") -> str:
    """A number with commas between thousands; a dash where it is not known."""
    if value is None:
        return "–"
    written = f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else amounts.number(value)
    return f"{written} {unit}" if unit else written


def hours(value: float | None) -> str:
    """GPU-hours; a dash where they are not known."""
    return "–" if value is None else amounts.gpu_hours(value)


def mib(value: int | None) -> str:
    """Memory; a dash where it is not known."""
    return "–" if value is None else amounts.memory(value)


def requested(text: str) -> str:
    """What containers ask for, in words: ``main: 2 x NVIDIA, 3,000 MiB, 30 %``; ``text`` is JSON objects in a row."""
    decoder, parts, rest = JSONDecoder(), list[str](), text.strip()
    try:
        while rest:
            asked, end = decoder.raw_decode(rest)
            parts.append(f"{asked['container']}: {_amounts(asked)}")
            rest = rest[end:].lstrip()
    except (ValueError, KeyError, TypeError):
        return text
    return "; ".join(parts)


def _amounts(asked: dict[str, Any]) -> str:
    if not asked["count"]:
        return "–"
    memory = mib(asked["memory_mib"]) if asked["memory_percent"] is None else f"{asked['memory_percent']} %"
    return f"{asked['count']} x {asked['vendor']}, {memory}, {asked['cores_percent']} %"
