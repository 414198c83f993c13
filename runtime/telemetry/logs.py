"""Log of a process, configured once by its command: all lines of the process, repeated lines of libraries less often.

As text for people, or as one JSON object a line: ``time``, ``level``, ``logger``, ``message``, and the subject of the
line, ``attempt``, ``pod``, ``cluster``, ``trace``, if the call has ``extra=identify_subject(...)``.
"""

import json
import logging
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {0x0A: "\\n", 0x0D: "\\r"}
_BUT_LINES: Final = {code: text for code, text in _CONTROLS.items() if code not in (0x09, 0x0A)}


def on_one_line(text: str) -> str:
    """Escape control characters, line breaks among them, as Python does."""
    return text.translate(_CONTROLS)


def on_lines(text: str) -> str:
    """Escape control characters as Python does, but leave line breaks and tabs as they are."""
    return text.translate(_BUT_LINES)


if TYPE_CHECKING:
    from runtime.settings.settings import LogSettings

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
QUIET_SECONDS: Final = 30.0
LIBRARIES: Final = ("aiokafka", "faust", "mode", "kafka", "httpx", "kubernetes", "opentelemetry")
_C1_CONTROLS: Final = re.compile("[\x7f-\x9f]")
SUBJECT_FIELDS: Final = ("attempt", "pod", "cluster", "trace")


def configure(
    settings: "LogSettings | None" = None,
    *,
    level: int | None = None,
    quiet: Iterable[str] = (),
    silent: Iterable[str] = (),
) -> None:
    """Configure the log on stderr by the settings; ``level`` comes before theirs. ``quiet`` loggers warn at most, as
    libraries do; ``silent`` loggers write nothing, because the process itself reports once what they would repeat.
    """
    wanted = logging.getLevelName(settings.log_level.upper()) if settings else logging.INFO
    logging.basicConfig(level=wanted if level is None else level, format=FORMAT)
    for handler in logging.getLogger().handlers:
        # At the handler: filters of a logger do not see the records of the loggers below it.
        handler.addFilter(RarelyRepeated())
        is_json = settings and settings.log_format == "json"
        handler.setFormatter(JsonLines() if is_json else TextLines(FORMAT))
    for name in (*LIBRARIES, *quiet):
        # With a log of errors only, libraries write no warnings either.
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    for name in silent:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def identify_subject(*, attempt: str = "", pod: object = "", cluster: str = "", trace: str = "") -> dict[str, str]:
    """Identify the subject of a log line, for ``extra=`` of the call. Empty fields are left out."""
    values = {"attempt": attempt, "pod": str(pod), "cluster": cluster, "trace": trace}
    return {name: value for name, value in values.items() if value}


class TextLines(logging.Formatter):
    """Formatter of one line for a message, whatever foreign texts it contains; a traceback follows on further lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class calls it so
        return on_one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class calls it so
        return on_lines(super().formatException(ei))


class JsonLines(logging.Formatter):
    """Formatter of one JSON object a line, with the text of a traceback in ``error``."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record; JSON escapes line breaks."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name in SUBJECT_FIELDS if (value := getattr(record, name, None))},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        # Not orjson: it refuses lone surrogates, which a broken name may hold, and a line must not be lost by them.
        text = json.dumps(line, default=str, ensure_ascii=False).encode(errors="backslashreplace").decode()
        # JSON escapes only control characters below the space.
        return _C1_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class RarelyRepeated(logging.Filter):
    """Filter that passes a complaint of a library once per ``QUIET_SECONDS``: an absent broker causes ten a second."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in LIBRARIES:
            return True
        # The format before its arguments are put in: lines that differ only in a broker or a number count as one.
        key = record.name, str(record.msg)[:200]
        now = time.monotonic()
        if now - self._passed_at.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._passed_at[key] = now
        return True
