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


def parse_line(line: bytes) -> SnifferMessage | None:
    """Parse a line; None if the sniffer did not write it."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return parse_message(fields) if isinstance(fields, dict) else None


def parse_message(fields: Mapping[str, Any]) -> SnifferMessage | None:
    """Parse the fields of a message; None if they name no pod or node, or no endpoint."""
    name, pod, node = (_get_text(fields, key) for key in ("name", "pod", "node"))
    # Requests over gRPC have no field `object`: their endpoint shows what they are about.
    kind: Object = (
        "Node" if fields.get("object") == "Node" or _get_text(fields, "endpoint").startswith("node") else "Pod"
    )
    qualified_name = name or (pod if kind == "Pod" else node)
    namespace, slash, short = qualified_name.rpartition("/")
    name = short if slash else qualified_name
    if not name or not _get_text(fields, "endpoint"):
        return None
    return SnifferMessage(
        kind, name, namespace or _get_text(fields, "namespace"), _get_text(fields, "endpoint"),
        _get_text(fields, "event"), node if kind == "Pod" else qualified_name,
        _get_text(fields, "reason"), _get_text(fields, "message"),
        parse_time(_get_text(fields, "timestamp")), _parse_extra(fields),
    )  # fmt: skip


def _get_text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def _parse_extra(fields: Mapping[str, Any]) -> dict[str, str]:
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


def parse_time(stamp: str) -> datetime | None:
    """Parse a time as Go prints it, or RFC 3339; None for anything else."""
    match = _GO_TIME.match(stamp)
    if match is None:
        return None
    zone = "+00:00" if match["zone"] == "Z" else match["zone"]
    try:
        time = datetime.fromisoformat(f"{match['day']}T{match['time']}{(match['part'] or '')[:7]}{zone}")
        time = time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if 1970 < time.year < 9999 else None
