"""The documents of counts: one for each row of a minute."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import orjson

from ..codec.records import format_rfc3339
from ..events import TrendsCounted


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
        counts = {"attempts": attempts, "pods": pods, "nodes": nodes, "devices": devices}
        # Every version of a row has the same id, so counting again replaces it.
        name = blake2b(
            orjson.dumps([event.cluster, started_at, event.partition, recorded_at, *key]), digest_size=16
        ).hexdigest()
        yield name, head | row | counts
