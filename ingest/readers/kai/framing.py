"""A line of KAI's log as a message: its time, the file that printed it, its session and its text.

v0.13 prints ``time<TAB>level<TAB>file:line<TAB>[session] [action] text``, where the text may continue on further
lines; v0.17 prints JSON with ``--log-json``, with the key ``sessionID`` twice. Nine of ten lines are noise, recognised
by the file that printed them; so nothing here parses more of a line than that takes.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

CONSOLE: Final = re.compile(
    rb"(?P<stamp>[0-9]{4}-[^\t]{10,40}+)\t[^\t]*+\t(?P<caller>[^\t:]{1,200}+):[0-9]++\t"
    rb"(?:\[(?P<session>[a-z0-9][0-9A-Za-z_-]{0,63}+)\] )?+(?:\[[a-z][0-9A-Za-z_]*+\] )?+(?P<word>\[?+[0-9A-Za-z_]*+)"
)
"""The beginning of a line, up to the message's first word, which is enough to recognise most lines.

Every line is matched, so no quantifier backtracks (``++``), and plain ranges are faster than ``\\d`` and ``\\w``.
"""
JSON: Final = re.compile(
    rb'\{"level":"[0-9A-Za-z_]++","ts":"(?P<stamp>[^"]{1,40}+)","caller":"(?P<caller>[^":]{1,200}+):[0-9]++",'
    rb'"msg":"(?P<word>\[?+[0-9A-Za-z_]*+)'
)
PLAIN_REST: Final = re.compile(
    rb'[ !#-\[\]-~]*(?P<end>)"(?:,"sessionID":"(?P<session>[ !#-\[\]-~]*)")*(?:,"action":"[ !#-\[\]-~]*")?\}'
)
"""The rest of a JSON line without escapes: the text is used as it is, up to ``end``, without decoding the JSON."""


class LogMessage(NamedTuple):
    """A message before its text is parsed; ``session`` is empty where the line has none."""

    stamp: bytes
    """The time as it is written; parsed only for messages that matter."""
    caller: bytes
    """``folder/file.go``, without the line number."""
    session: str
    line: bytes
    start: int = 0
    """Index in ``line`` at which the text begins."""

    @property
    def text(self) -> bytes:
        return self.line[self.start :]


def parse_message(line: bytes, head: re.Match[bytes]) -> LogMessage | None:
    """Parse the message of a line whose beginning ``head`` matched; None for incomplete JSON."""
    # JSON may have escapes in its text, which only a parser resolves.
    if head.re is JSON:
        return _from_json(line)
    stamp, caller, session = head.group("stamp", "caller", "session")
    return LogMessage(stamp, caller, session.decode() if session else "", line, head.start("word"))


def _from_json(line: bytes) -> LogMessage | None:
    try:
        fields: Any = orjson.loads(line)
        stamp, caller, text, session = fields["ts"], fields["caller"], fields["msg"], fields.get("sessionID", "")
        return LogMessage(stamp.encode(), caller.partition(":")[0].encode(), str(session), text.encode())
    # A line that was cut, or JSON with a value of another type: never an error of this program.
    except (orjson.JSONDecodeError, KeyError, AttributeError, UnicodeEncodeError):
        return None


@lru_cache(maxsize=64)
def parse_time(stamp: bytes) -> datetime | None:
    """Parse RFC 3339, also with ``+0000`` as zap writes it, and without a zone as UTC. Cached: many lines share one."""
    try:
        time = datetime.fromisoformat(stamp.decode())
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    # Events have no times before 1970.
    return time if time.year >= 1970 else None
