"""kube-scheduler without an extender: its pods, and what the reader of its events puts into Kafka."""

from typing import Any

from aiokafka import AIOKafkaConsumer

from engine.summaries.fold import AttemptFold
from schemas.codec.records import decode
from schemas.events import DEFAULT_CLUSTER, AttemptEvent, AttemptSummarized, Event
from schemas.json_types import Json
from schemas.topics import DECISIONS, NODES
from schemas.topics import PODS as SEEN

SCHEDULER = "plain"
"""kube-scheduler without an extender."""


async def read_events(kafka: str, subject: str) -> list[Event]:
    """Read the events of the default cluster whose subject begins so: ``NAMESPACE/``, or the name of a node.

    The topics have the events of all tests before. Tests read them again and again, and to decode all takes longest.
    """
    prefix = f"{DEFAULT_CLUSTER}/{subject}".encode()
    names = [topic.name for topic in (DECISIONS, NODES, SEEN)]
    consumer = AIOKafkaConsumer(*names, bootstrap_servers=kafka, auto_offset_reset="earliest")
    await consumer.start()
    events: list[Event] = []
    try:
        ends: dict[Any, int] = await consumer.end_offsets(list(consumer.assignment()))
        await consumer.seek_to_beginning()
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                decoded = (decode(r.value, r.headers) for r in records if (r.key or b"").startswith(prefix))
                events += [event for event in decoded if isinstance(event, Event)]
    finally:
        await consumer.stop()
    return events


def list_attempts(events: list[Event]) -> list[AttemptSummarized]:
    folds: dict[str, AttemptFold] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            folds.setdefault(event.attempt_id, AttemptFold()).add(event)
    return [fold.summarize() for fold in folds.values()]


def a_pod(name: str, **spec: Any) -> Json:
    """``requests``: of its one container; everything else goes into the spec."""
    requests = spec.pop("requests", {})
    container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": spec.pop("limits", {})}}
    plain_spec = {"schedulerName": SCHEDULER, "containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name}, "spec": plain_spec | spec}
