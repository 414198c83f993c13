"""One word of the sniffer: a JSON line of its log, or a request to its service.

The log's lines say ``object``, ``name``, ``endpoint``, ``event`` and, as far as there is something to say, ``node``,
``reason``, ``message``, ``timestamp`` and ``extra``. Requests say ``pod`` and ``payload`` instead.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson

Object = Literal["Pod", "Node"]

_GO_TIME: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?P<part>\.\d{1,9})? ?(?P<zone>Z|[+-]\d\d:?\d\d)"
)
"""``time.Time.String()``: ``2024-04-20 18:22:03 +0000 UTC``, with nanoseconds and ``m=+0.1`` behind where it is now."""


@dataclass(frozen=True, slots=True)
class SnifferMessage:
    object: Object
    name: str
    namespace: str = ""
    endpoint: str = ""
    event: str = ""
    """A condition's type, or a pod's phase."""
    node: str = ""
    reason: str = ""
    message: str = ""
    time: datetime | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


def message_of_line(line: bytes) -> SnifferMessage | None:
    """None for a line that is none of the sniffer's."""
    try:
        said = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return message_of(said) if isinstance(said, dict) else None


def message_of(said: Mapping[str, Any]) -> SnifferMessage | None:
    """Of the fields of a line or of a request."""
    name, pod, node = (_text(said, key) for key in ("name", "pod", "node"))
    kind: Object = "Node" if said.get("object") == "Node" or _text(said, "endpoint").startswith("node") else "Pod"
    about = name or (pod if kind == "Pod" else node)
    namespace, slash, short = about.rpartition("/")
    if not about or not _text(said, "endpoint"):
        return None
    return SnifferMessage(
        kind, short if slash else about, namespace or _text(said, "namespace"), _text(said, "endpoint"),
        _text(said, "event"), node if kind == "Pod" else about, _text(said, "reason"), _text(said, "message"),
        time_of(_text(said, "timestamp")), _extra(said),
    )  # fmt: skip


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value.strip() if isinstance(value, str) else ""


def _extra(said: Mapping[str, Any]) -> dict[str, str]:
    extra = said.get("extra") or said.get("payload")
    if isinstance(extra, str):
        try:
            extra = orjson.loads(extra)
        except orjson.JSONDecodeError:
            return {}
    if not isinstance(extra, dict):
        return {}
    return {str(key): value for key, value in extra.items() if isinstance(value, str)}


def time_of(stamp: str) -> datetime | None:
    """A time as Go prints it, or RFC 3339; None for anything else."""
    found = _GO_TIME.match(stamp)
    if found is None:
        return None
    zone = "+00:00" if found["zone"] == "Z" else found["zone"]
    try:
        time = datetime.fromisoformat(f"{found['day']}T{found['time']}{(found['part'] or '')[:7]}{zone}")
        time = time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if 1970 < time.year < 9999 else None
