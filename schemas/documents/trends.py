"""The documents of counts: one for each row of a minute, and one for each row of an hour."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

import orjson

from ..codec.records import format_rfc3339
from ..events import TrendsCounted

COUNTED: Final = ("attempts", "pods", "nodes", "devices")


def build_trend_documents(event: TrendsCounted) -> Iterator[tuple[str, dict[str, Any]]]:
    """Build id and document of each row."""
    started_at, recorded_at = format_rfc3339(event.started_at), format_rfc3339(event.recorded_at)
    head = {
        "@timestamp": started_at,
        "cluster": event.cluster,
        "partition": event.partition,
        "recorded_at": recorded_at,
    }
    words = zip(event.namespace, event.result, event.dimension, event.value, strict=True)
    numbers = zip(
        *(column.tolist() for column in (event.attempts, event.pods, event.nodes, event.devices)), strict=True
    )
    for key, (attempts, pods, nodes, devices) in zip(words, numbers, strict=True):
        namespace, result, dimension, value = key
        row = {"namespace": namespace, "result": result, "dimension": dimension, "value": value}
        counts = dict(zip(COUNTED, (attempts, pods, nodes, devices), strict=True))
        # Every version of a row has the same id, so counting again replaces it.
        name = blake2b(
            orjson.dumps([event.cluster, started_at, event.partition, recorded_at, *key]), digest_size=16
        ).hexdigest()
        yield name, head | row | counts


def build_hour_document(key: Mapping[str, Any], counts: Sequence[int]) -> tuple[str, datetime, dict[str, Any]]:
    """Build id, hour and document of a row of an hour.

    ``key``: its words, and milliseconds since 1970: ``hour``, and ``day`` of ``recorded_at``.
    """
    hour, day = (datetime.fromtimestamp(key[name] / 1000, UTC) for name in ("hour", "day"))
    words = {name: value for name, value in key.items() if name not in ("hour", "day")}
    fields = {"@timestamp": format_rfc3339(hour), "recorded_at": format_rfc3339(day), **words}
    name = blake2b(orjson.dumps(["hour", *fields.values()]), digest_size=16).hexdigest()
    return name, hour, fields | dict(zip(COUNTED, counts, strict=True))
