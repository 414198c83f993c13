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

_COLOUR: Final = re.compile(rb"\x1b\[[\d;]*m")
_BRACKETS: Final = re.compile(rb"(?:\[(?P<session>[^\]\s]{1,64})\] )?(?:\[(?P<action>[a-z]\w*)\] )?")
_CALLER_KEY: Final = b'"caller":"'
_MESSAGE_KEY: Final = b'"msg":"'


class Message(NamedTuple):
    """``session`` is empty where the line does not say it."""

    stamp: bytes
    """The time as it is written: most of them are never read."""
    caller: bytes
    """``folder/file.go``, without the line number."""
    session: str
    text: bytes


class Head(NamedTuple):
    """What a line is told apart by, before anything in it is decoded."""

    caller: bytes
    start: bytes
    """The message, or more than it: enough to see how it begins."""
    stamp: bytes
    """Empty for JSON, which says it elsewhere."""
    is_json: bool


def head_of(line: bytes) -> Head | None:
    """Which file prints the line, and how its message begins; None for a line that begins no message."""
    if line[:1] == b"{":
        return _json_head(line)
    parts = line.split(b"\t", 3)
    if len(parts) < 4 or not line[:4].isdigit():
        return None
    stamp, _, caller, start = parts
    return Head(caller.partition(b":")[0], start, stamp, False)


def _json_head(line: bytes) -> Head | None:
    at = line.find(_CALLER_KEY)
    if at < 0:
        return None
    at += len(_CALLER_KEY)
    message = line.find(_MESSAGE_KEY)
    start = line[message + len(_MESSAGE_KEY) :] if message >= 0 else b""
    return Head(line[at : line.find(b'"', at)].partition(b":")[0], start, b"", True)


def message_start(head: Head) -> bytes:
    """The message without the brackets before it."""
    start = head.start
    if head.is_json:
        return start
    if b"\x1b" in start[:80]:
        start = _COLOUR.sub(b"", start)
    while start[:1] == b"[" and (end := start.find(b"] ")) > 0 and not start[1:2].isupper():
        start = start[end + 2 :]
    return start


def message_of(line: bytes, head: Head) -> Message | None:
    """The message that begins with the line; None where it is cut or is no JSON after all."""
    if head.is_json:
        return _from_json(line)
    rest = _COLOUR.sub(b"", head.start) if b"\x1b" in head.start else head.start
    brackets = _BRACKETS.match(rest)
    if brackets is None or not head.stamp:
        return None
    return Message(head.stamp, head.caller, _text(brackets["session"]), rest[brackets.end() :])


def _text(part: bytes | None) -> str:
    return part.decode(errors="replace") if part else ""


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
