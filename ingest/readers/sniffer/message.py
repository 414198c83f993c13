"""One message of the sniffer: a JSON line of its log, or a request to its service.

A line has the fields ``object``, ``name``, ``endpoint``, ``event`` and, where they are not empty, ``node``, ``reason``,
``message``, ``timestamp`` and ``extra``. A request has ``pod`` and ``payload`` instead of ``name`` and ``extra``.
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
"""``time.Time.String()``: ``2024-04-20 18:22:03 +0000 UTC``, also with nanoseconds and ``m=+0.1``."""


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
    """None for a line that the sniffer did not write."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return message_of(fields) if isinstance(fields, dict) else None


def message_of(fields: Mapping[str, Any]) -> SnifferMessage | None:
    """The message with these fields; None where they name no pod or node, or no endpoint."""
    name, pod, node = (_text(fields, key) for key in ("name", "pod", "node"))
    # Requests over gRPC have no field `object`: their endpoint shows what they are about.
    kind: Object = "Node" if fields.get("object") == "Node" or _text(fields, "endpoint").startswith("node") else "Pod"
    about = name or (pod if kind == "Pod" else node)
    namespace, slash, short = about.rpartition("/")
    name = short if slash else about
    if not name or not _text(fields, "endpoint"):
        return None
    return SnifferMessage(
        kind, name, namespace or _text(fields, "namespace"), _text(fields, "endpoint"),
        _text(fields, "event"), node if kind == "Pod" else about, _text(fields, "reason"), _text(fields, "message"),
        time_of(_text(fields, "timestamp")), _extra(fields),
    )  # fmt: skip


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def _extra(fields: Mapping[str, Any]) -> dict[str, str]:
    extra = fields.get("extra") or fields.get("payload")
    # The gRPC field `payload` holds JSON as text; the log has an object.
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
