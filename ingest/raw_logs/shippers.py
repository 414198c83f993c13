"""The JSON of each shipper: whose line it is, when it was written, what it says.

- Fluent Bit: ``log`` or ``message``, ``time``, ``kubernetes`` with ``namespace_name``, ``pod_name``, ``container_name``
- Vector: ``message``, ``timestamp``, ``kubernetes`` with ``pod_namespace``, ``pod_name``, ``container_name``
- OpenTelemetry Collector (``otlp_json``): ``resourceLogs`` with attributes ``k8s.*`` and many log records
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

_NANOSECONDS: Final = 1_000_000_000
_LAST_SECOND: Final = 253_370_764_800  # the year 9999
_PARTIAL_TAGS: Final = frozenset(("P", "partial"))


class ContainerLog(NamedTuple):
    """One container's output; parts that a shipper does not say are empty."""

    namespace: str
    pod: str
    container: str

    def __str__(self) -> str:
        return "/".join(self)


class ShippedLine(NamedTuple):
    stream: ContainerLog
    text: bytes
    time: datetime | None
    labels: tuple[tuple[str, str], ...] = ()
    goes_on: bool = False
    """The container runtime cut the line: the rest comes with the stream's next one."""


def lines_of_record(value: bytes) -> list[ShippedLine] | None:
    """The lines in a record, in order; None where it is no shipper's JSON."""
    try:
        said = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    # Fluent Bit's HTTP-like formats and Vector's batches put several objects into an array.
    objects = said if isinstance(said, list) else [said]
    if not all(isinstance(each, dict) for each in objects):
        return None
    found = [line for each in objects for line in _lines(each)]
    return found or None


def _lines(said: dict[str, Any]) -> Iterator[ShippedLine]:
    if isinstance(said.get("resourceLogs"), list):
        yield from _otlp(said)
    elif (text := _first_text(said, "log", "message", "MESSAGE")) is not None:
        yield _plain(said, text)


def _plain(said: dict[str, Any], text: str) -> ShippedLine:
    kubernetes = _object(said.get("kubernetes"))
    stream = ContainerLog(
        _text(kubernetes, "namespace_name") or _text(kubernetes, "pod_namespace"),
        _text(kubernetes, "pod_name"),
        _text(kubernetes, "container_name"),
    )
    stamps = (said.get(key) for key in ("time", "timestamp", "@timestamp", "date"))
    times = [time for stamp in stamps if (time := _time(stamp))]
    labels = _object(kubernetes.get("labels")) or _object(kubernetes.get("pod_labels"))
    goes_on = said.get("_p", said.get("logtag")) in _PARTIAL_TAGS
    return ShippedLine(stream, _bytes(text), times[0] if times else None, _pairs(labels), goes_on)


def _otlp(said: dict[str, Any]) -> Iterator[ShippedLine]:
    for resource in _objects(said.get("resourceLogs")):
        attributes = _attributes(_object(resource.get("resource")).get("attributes"))
        names = ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name")
        stream = ContainerLog(*(attributes.get(name, "") for name in names))
        start = "k8s.pod.label."
        alternative = "k8s.pod.labels."
        labels = {
            key.removeprefix(start).removeprefix(alternative): value
            for key, value in attributes.items()
            if key.startswith((start, alternative))
        }
        for scope in _objects(resource.get("scopeLogs")):
            for record in _objects(scope.get("logRecords")):
                if (text := _string_value(record.get("body"))) is not None:
                    goes_on = _attributes(record.get("attributes")).get("logtag") in _PARTIAL_TAGS
                    time = _nanoseconds(record.get("timeUnixNano")) or _nanoseconds(record.get("observedTimeUnixNano"))
                    yield ShippedLine(stream, _bytes(text), time, _pairs(labels), goes_on)


def _attributes(said: Any) -> dict[str, str]:
    found = ((each.get("key"), _string_value(each.get("value"))) for each in _objects(said))
    return {key: value for key, value in found if isinstance(key, str) and value is not None}


def _string_value(said: Any) -> str | None:
    value = said.get("stringValue") if isinstance(said, dict) else None
    return value if isinstance(value, str) else None


def _nanoseconds(said: Any) -> datetime | None:
    digits = str(said) if isinstance(said, str | int) and not isinstance(said, bool) else ""
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 20 or not int(digits):
        return None
    seconds, rest = divmod(int(digits), _NANOSECONDS)
    if seconds >= _LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1_000)


def _time(said: Any) -> datetime | None:
    """RFC 3339, or seconds since 1970 with or without a part."""
    if isinstance(said, str):
        try:
            time = datetime.fromisoformat(said)
            return time.astimezone(UTC) if time.tzinfo and 1970 < time.year < 9999 else None
        except ValueError:
            return None
    if isinstance(said, int | float) and not isinstance(said, bool) and 0 < said < _LAST_SECOND:
        return datetime.fromtimestamp(said, UTC)
    return None


def _first_text(said: Mapping[str, Any], *keys: str) -> str | None:
    return next((value for key in keys if isinstance(value := said.get(key), str)), None)


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""


def _object(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {}


def _objects(said: Any) -> list[dict[str, Any]]:
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def _pairs(labels: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(key), value) for key, value in labels.items() if isinstance(value, str)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").rstrip(b"\r\n")
