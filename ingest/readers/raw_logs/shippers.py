"""The lines in the JSON of each shipper, with their container and time.

- Fluent Bit: ``log`` or ``message``, ``time``, ``kubernetes`` with ``namespace_name``, ``pod_name``, ``container_name``
- Vector: ``message``, ``timestamp``, ``kubernetes`` with ``pod_namespace``, ``pod_name``, ``container_name``
- OpenTelemetry Collector (``otlp_json``): ``resourceLogs`` with attributes ``k8s.*`` and many log records

Where several clusters ship to one topic, each record names its cluster: OpenTelemetry in ``k8s.cluster.name``, the
others in ``cluster_name``, beside ``kubernetes`` or in it.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

from runtime.settings.names import to_cluster_name
from schemas.codec.records import MAX_DECODED_BYTES

_NANOSECONDS: Final = 1_000_000_000
_LAST_SECOND: Final = 253_370_764_800  # the year 9999
# CRI's tag for a part of a line, as shippers pass it on in `_p` or `logtag`.
_PARTIAL_TAGS: Final = frozenset(("P", "partial"))


class ShippedLog(NamedTuple):
    """The container that wrote a line; parts that the shipper leaves out are empty."""

    namespace: str
    pod: str
    container: str
    cluster: str = ""

    def __str__(self) -> str:
        return "/".join(self[:3])


class ShippedLine(NamedTuple):
    container: ShippedLog
    text: bytes
    time: datetime | None
    labels: tuple[tuple[str, str], ...] = ()
    is_partial: bool = False
    """The container runtime divided the line: the container's next line continues it."""


def parse_record(value: bytes) -> list[ShippedLine] | None:
    """Parse the lines in a record, in order; None for a value that is not a shipper's JSON, or is too long."""
    if len(value) > MAX_DECODED_BYTES:
        return None
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    # Fluent Bit's HTTP-like formats and Vector's batches put several objects into an array.
    objects = parsed if isinstance(parsed, list) else [parsed]
    if not all(isinstance(fields, dict) for fields in objects):
        return None
    lines = [line for fields in objects for line in _iterate_lines(fields)]
    return lines or None


def _iterate_lines(fields: dict[str, Any]) -> Iterator[ShippedLine]:
    if isinstance(fields.get("resourceLogs"), list):
        yield from _iterate_otlp_lines(fields)
    elif (text := _get_first_text(fields, "log", "message", "MESSAGE")) is not None:
        yield _parse_plain(fields, text)


def _parse_plain(fields: dict[str, Any], text: str) -> ShippedLine:
    kubernetes = _to_object(fields.get("kubernetes"))
    container = ShippedLog(
        _get_text(kubernetes, "namespace_name") or _get_text(kubernetes, "pod_namespace"),
        _get_text(kubernetes, "pod_name"),
        _get_text(kubernetes, "container_name"),
        to_cluster_name(_get_text(fields, "cluster_name") or _get_text(kubernetes, "cluster_name")),
    )
    # Each shipper's default first; the names can be configured.
    stamps = (fields.get(key) for key in ("time", "timestamp", "@timestamp", "date"))
    times = [time for stamp in stamps if (time := _parse_time(stamp))]
    labels = _to_object(kubernetes.get("labels")) or _to_object(kubernetes.get("pod_labels"))
    is_partial = _get_text(fields, "_p" if "_p" in fields else "logtag") in _PARTIAL_TAGS
    return ShippedLine(container, _to_bytes(text), times[0] if times else None, _to_pairs(labels), is_partial)


def _iterate_otlp_lines(fields: dict[str, Any]) -> Iterator[ShippedLine]:
    for resource in _to_objects(fields.get("resourceLogs")):
        attributes = _parse_attributes(_to_object(resource.get("resource")).get("attributes"))
        namespace, pod, name = (attributes.get(f"k8s.{part}.name", "") for part in ("namespace", "pod", "container"))
        cluster = to_cluster_name(attributes.get("k8s.cluster.name", ""))
        container = ShippedLog(namespace, pod, name, cluster)
        start = "k8s.pod.label."
        alternative = "k8s.pod.labels."
        labels = {
            key.removeprefix(start).removeprefix(alternative): value
            for key, value in attributes.items()
            if key.startswith((start, alternative))
        }
        for scope in _to_objects(resource.get("scopeLogs")):
            for record in _to_objects(scope.get("logRecords")):
                if (text := _get_string_value(record.get("body"))) is not None:
                    is_partial = _parse_attributes(record.get("attributes")).get("logtag") in _PARTIAL_TAGS
                    time = _parse_nanoseconds(record.get("timeUnixNano")) or _parse_nanoseconds(
                        record.get("observedTimeUnixNano")
                    )
                    yield ShippedLine(container, _to_bytes(text), time, _to_pairs(labels), is_partial)


def _parse_attributes(value: Any) -> dict[str, str]:
    pairs = ((item.get("key"), _get_string_value(item.get("value"))) for item in _to_objects(value))
    return {key: value for key, value in pairs if isinstance(key, str) and value is not None}


def _get_string_value(value: Any) -> str | None:
    text = value.get("stringValue") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


def _parse_nanoseconds(value: Any) -> datetime | None:
    digits = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 20 or not int(digits):
        return None
    seconds, remainder = divmod(int(digits), _NANOSECONDS)
    # datetime raises for later ones, and a shipper may send any number.
    if seconds >= _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=remainder // 1_000)


def _parse_time(value: Any) -> datetime | None:
    """Parse RFC 3339, or seconds since 1970 with or without a fraction."""
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
            return time.astimezone(UTC) if time.tzinfo and 1970 < time.year < 9999 else None
        except ValueError:
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LAST_SECOND:
        return datetime.fromtimestamp(value, UTC)
    return None


def _get_first_text(fields: Mapping[str, Any], *keys: str) -> str | None:
    return next((value for key in keys if isinstance(value := fields.get(key), str)), None)


def _get_text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _to_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _to_objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _to_pairs(labels: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(key), value) for key, value in labels.items() if isinstance(value, str)))


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").rstrip(b"\r\n")
