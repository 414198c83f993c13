"""Formats of times, durations, amounts and names: the filters of the templates."""

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
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC", re.ASCII)
_INERT: Final = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Categories of characters that no text of the page needs: controls, marks of direction, halves of pairs."""
_ALLOWED: Final = "\n\t"
_UNIT: Final = re.compile(r"(?a:(\d) (%|MiB|min|ms|s|h)(?![\w-])|(\d) (?=[\u4e00-\u9fff]))|(?<=\d)(?=[块个张台秒分天])")
_SUSPECT: Final = re.compile(r"[^\n\t\x20-\x7e\xa1-\xac\xae-\u05ff\u3000-\u9fff\uac00-\ud7a3\uff01-\uffee]")
"""Characters that may be of these categories; nearly no text has any, so that the categories are rarely looked up."""


def escape_hidden(value: Any) -> Any:
    """Write out escape codes and marks of direction as ``\\u202e``: they change nothing then.

    Every value that a template prints passes here.
    """
    if isinstance(value, Markup) or not isinstance(value, str) or not _SUSPECT.search(value):
        return value
    return _SUSPECT.sub(_write_out, value)


def _write_out(match: "re.Match[str]") -> str:
    character = match[0]
    if unicodedata.category(character) not in _INERT or character in _ALLOWED:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_code(text: str) -> Markup:
    """Escape the text: words between backquotes become ``<code>``, and times ``<time>``.

    No line ends between a number and its unit.
    """
    parts = escape_hidden(text).split("`")
    # An unpaired backquote is an ordinary character.
    if len(parts) % 2 == 0:
        return _mark_times(_keep_units(escape_hidden(text)))
    code = Markup("<code>{}</code>")
    return Markup("").join(
        code.format(part) if number % 2 else _mark_times(_keep_units(part)) for number, part in enumerate(parts)
    )


def _mark_times(text: str) -> Markup:
    """Escape the text, with a time element for each time in it: the page shows those in the reader's zone."""
    element = Markup('<time datetime="{}T{}Z">{} {} UTC</time>')
    # The pattern has two groups: a text, then a date, a time and a text for each time.
    first, *others = _MOMENT.split(text)
    triples = zip(others[::3], others[1::3], others[2::3], strict=True)
    return escape(first) + Markup("").join(element.format(day, time, day, time) + words for day, time, words in triples)


def _keep_units(text: str) -> str:
    return _UNIT.sub(_join_unit, text)


def _join_unit(match: "re.Match[str]") -> str:
    if not match[0]:
        return "\u2060"
    return f"{match[1] or match[3]}\u00a0{match[2] or ''}"


def format_moment(text: str | datetime | None) -> Markup:
    """Format a time element: its text is to the second in UTC, its ``datetime`` is exact."""
    if not text:
        return Markup("–")
    exact = text if isinstance(text, str) else text.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Markup('<time datetime="{}">{}</time>').format(escape_hidden(exact), escape_hidden(format_second(exact)))


def format_second(text: str) -> str:
    """Format the time in UTC to the second; a text without a time stays as it is."""
    try:
        return parse_time(text).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return text


def parse_time(text: str) -> datetime:
    """Parse the time, in UTC. Raises ``ValueError``."""
    return datetime.fromisoformat(text).astimezone(UTC)


def format_duration(seconds: float | None, language: str = "en") -> str:
    """Format the two greatest units: ``3 h 12 min``; a dash if it is missing."""
    if seconds is None:
        return "–"
    remainder = max(0, round(seconds))
    parts: list[str] = []
    for name, size in zip(_UNIT_NAMES[language], _UNITS, strict=True):
        amount, remainder = divmod(remainder, size)
        if amount or (size == 1 and not parts):
            parts.append(f"{amount} {name}")
    return " ".join(parts[:2])


def format_age(text: str | None, now: datetime, language: str = "en") -> str:
    """Format the time since then; a dash if it is missing."""
    try:
        return format_duration((now - parse_time(text)).total_seconds(), language) if text else "–"
    except ValueError:
        return "–"


def format_span(text: str, language: str = "en") -> str:
    """Format ``2h``, as a filter takes it, in words; empty for anything else, which is a time."""
    if not (match := _AGO.fullmatch(text)):
        return ""
    return format_duration(int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[match[2]], language)


def format_score(value: float) -> str:
    """Format with two decimals, always, so that the points of a column line up."""
    return f"{value:.2f}"


def format_amount(value: float | None, unit: str = "") -> str:
    """Format a number with commas between thousands; a dash if it is missing."""
    if value is None:
        return "–"
    written = f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else amounts.format_number(value)
    return f"{written} {unit}" if unit else written


def format_hours(value: float | None) -> str:
    """Format GPU-hours; a dash if they are missing."""
    return "–" if value is None else amounts.format_gpu_hours(value)


def format_mib(value: int | None) -> str:
    """Format memory; a dash if it is missing."""
    return "–" if value is None else amounts.format_memory(value)


def format_requests(text: str) -> str:
    """Format the requests of containers: ``main: 2 x NVIDIA, 3,000 MiB, 30 %``; ``text`` is JSON objects in a row."""
    decoder, parts, remainder = JSONDecoder(), list[str](), text.strip()
    try:
        while remainder:
            request, end = decoder.raw_decode(remainder)
            parts.append(f"{request['container']}: {_format_request(request)}")
            remainder = remainder[end:].lstrip()
    except (ValueError, KeyError, TypeError):
        return text
    return "; ".join(parts)


def _format_request(request: dict[str, Any]) -> str:
    if not request["count"]:
        return "–"
    memory = (
        format_mib(request["memory_mib"]) if request["memory_percent"] is None else f"{request['memory_percent']} %"
    )
    return f"{request['count']} x {request['vendor']}, {memory}, {request['cores_percent']} %"
