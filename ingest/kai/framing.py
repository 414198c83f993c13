"""A line of KAI's log as a message: when, which file prints it, in which session and action.

v0.13 prints ``time<TAB>level<TAB>file:line<TAB>[session] [action] text`` and lets a text go on over several lines;
v0.17 prints JSON with ``--log-json``, in which the key ``sessionID`` stands twice. Everything here is cheap: of a
hundred lines some ninety are told apart by the file that prints them and never looked at again.
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
"""The beginning of a line, up to the message's first word: most lines are told apart by it and not looked at again.

Every line is matched, so nothing here goes back (``++``), and plain ranges are quicker than ``\\d`` and ``\\w``.
"""
JSON: Final = re.compile(
    rb'\{"level":"[0-9A-Za-z_]++","ts":"(?P<stamp>[^"]{1,40}+)","caller":"(?P<caller>[^":]{1,200}+):[0-9]++",'
    rb'"msg":"(?P<word>\[?+[0-9A-Za-z_]*+)'
)
PLAIN_REST: Final = re.compile(
    rb'[ !#-\[\]-~]*(?P<end>)"(?:,"sessionID":"(?P<session>[ !#-\[\]-~]*)")*(?:,"action":"[ !#-\[\]-~]*")?\}'
)
"""The rest of a line of JSON in which nothing is escaped: its text stands there as it is, up to ``end``."""


class Message(NamedTuple):
    """``session`` is empty where the line does not say it."""

    stamp: bytes
    """The time as it is written: most of them are never read."""
    caller: bytes
    """``folder/file.go``, without the line number."""
    session: str
    line: bytes
    start: int = 0
    """Where in ``line`` the text begins."""

    @property
    def text(self) -> bytes:
        return self.line[self.start :]


def message_of(line: bytes, head: re.Match[bytes]) -> Message | None:
    """The message that begins with the line, of which ``head`` was found; None for JSON that is cut."""
    if head.re is JSON:
        return _from_json(line)
    stamp, caller, session = head.group("stamp", "caller", "session")
    return Message(stamp, caller, session.decode() if session else "", line, head.start("word"))


def _from_json(line: bytes) -> Message | None:
    try:
        said: Any = orjson.loads(line)
        stamp, caller, text, session = said["ts"], said["caller"], said["msg"], said.get("sessionID", "")
        return Message(stamp.encode(), caller.partition(":")[0].encode(), str(session), text.encode())
    except (orjson.JSONDecodeError, KeyError, AttributeError, UnicodeEncodeError):
        return None


@lru_cache(maxsize=64)
def time_of(stamp: bytes) -> datetime | None:
    """RFC 3339, also ``+0000`` as zap writes it; a time without a zone is taken for UTC. Many lines share one."""
    try:
        time = datetime.fromisoformat(stamp.decode())
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if time.year >= 1970 else None
