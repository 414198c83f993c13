"""Inputs of conditions, decoded from Kafka records: a few event types, and three facts that only Kafka knows. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from runtime.kafka.record import record_time
from schemas.codec.records import decode
from schemas.events import (
    AttemptConcluded,
    AttemptUnchanged,
    BindConcluded,
    DetailDropped,
    Event,
    FindingReported,
    MessagesEmitted,
    NodeChecked,
    PodMessage,
    PodObserved,
    WorkloadObserved,
)
from schemas.topics import ALERTS, DEAD_LETTERS, DECISIONS, NODES, RAW_LOGS


class SchedulerActivity(NamedTuple):
    """A scheduler published something, or something was read of it: it is alive."""

    cluster: str
    scheduler: str
    received_at: datetime
    reader: str = ""
    """The reader, as in ``AttemptEvent.reader``."""


class DecisionArrival(NamedTuple):
    """A decision reached Kafka, published by the scheduler that made it (not read from a log)."""

    cluster: str
    scheduler: str
    received_at: datetime
    delay_seconds: float
    """Time from the decision to its arrival, in which it waited in the scheduler's spool."""


class DeadLettered(NamedTuple):
    """A record was written to the dead letters."""

    topic: str
    """The topic it was read from."""
    received_at: datetime
    cluster: str = ""
    """The cluster that the record's headers or its key name; empty where neither does."""


AlertInput: TypeAlias = (
    PodMessage
    | BindConcluded
    | DetailDropped
    | FindingReported
    | NodeChecked
    | PodObserved
    | WorkloadObserved
    | SchedulerActivity
    | DecisionArrival
    | DeadLettered
)


_SCHEDULER: Final = re.compile(r"/clusters/([^/]+)/schedulers/([^/]+)")
"""``ce_source`` of what is published of a scheduler (``schemas.events.build_source``)."""
_CLUSTER: Final = re.compile(r"/clusters/([^/]+)")
_CLUSTER_IN_KEY: Final = re.compile(r"([a-z0-9][-a-z0-9.]{0,62})/", re.ASCII)
_DECODED: Final = frozenset(
    find_event_type.TYPE.encode()
    for find_event_type in (
        AttemptConcluded,
        AttemptUnchanged,
        BindConcluded,
        DetailDropped,
        FindingReported,
        MessagesEmitted,
        NodeChecked,
        PodObserved,
        WorkloadObserved,
    )
)
_MAX_AHEAD: Final = timedelta(hours=1)


def decode_inputs(record: Any) -> list[AlertInput]:
    """Decode the inputs of an aiokafka record: none if no condition uses it, or if it can't be decoded (then the worker
    dead-letters it, and that record is counted)."""
    # Kafka's time and not the event's: it is the one clock that the records of all schedulers share.
    received_at = record_time(record)
    if record.topic == DEAD_LETTERS.name:
        return [_to_dead_lettered(record, received_at)]
    inputs: list[AlertInput] = []
    source = _SCHEDULER.fullmatch(_get_header(record.headers, "ce_source"))
    if source and record.topic == NODES.name:
        # Any record about nodes is a sign of life, also one that no condition decodes.
        inputs.append(SchedulerActivity(source[1], unquote(source[2]), received_at))
    # Most records of these topics are device rows: the type in the header spares decoding their values.
    if _get_header(record.headers, "ce_type").encode() in _DECODED:
        inputs += _list_event_inputs(decode(record.value, record.headers), record.topic, received_at)
    return inputs


def _to_dead_lettered(record: Any, received_at: datetime) -> DeadLettered:
    topic = _get_header(record.headers, "dead_letter_topic") or "unknown"
    source = _CLUSTER.match(_get_header(record.headers, "ce_source"))
    if source:
        return DeadLettered(topic, received_at, source[1])
    # What the pipeline publishes has no cluster in its source. Keys begin with it, but for these two topics.
    has_cluster = topic not in (RAW_LOGS.name, ALERTS.name)
    key = _CLUSTER_IN_KEY.match((record.key or b"").decode(errors="replace")) if has_cluster else None
    return DeadLettered(topic, received_at, key[1] if key else "")


def _list_event_inputs(event: object, topic: str, received_at: datetime) -> list[AlertInput]:
    if isinstance(event, Event) and event.time - received_at > _MAX_AHEAD:
        return []  # From a clock this wrong, an alert would start in the future and not resolve until then.
    if isinstance(event, AttemptConcluded | AttemptUnchanged | BindConcluded | DetailDropped):
        # Of the decisions one record of each attempt and each bind is enough, and these are decoded anyway.
        is_alive = SchedulerActivity(event.cluster, event.scheduler, received_at, event.reader)
        return [is_alive, *_list_decision_inputs(event, received_at)]
    if isinstance(event, MessagesEmitted):
        return [*event.list_messages()]
    if isinstance(event, FindingReported) and topic == DECISIONS.name:
        return []  # The worker copies it to the topic of findings, where it is read once.
    return [event] if isinstance(event, Event) else []  # type: ignore[list-item]


def _list_decision_inputs(
    event: AttemptConcluded | AttemptUnchanged | BindConcluded | DetailDropped, received_at: datetime
) -> list[AlertInput]:
    if isinstance(event, AttemptConcluded | AttemptUnchanged):
        # With a reader, which found the attempt in a log, maybe days later: no measure of a spool's delay.
        delay = (received_at - event.ended_at).total_seconds()
        return [] if event.reader else [DecisionArrival(event.cluster, event.scheduler, received_at, delay)]
    return [event]


def _get_header(headers: Iterable[tuple[str, bytes]], name: str) -> str:
    return next((value.decode(errors="replace") for key, value in headers if key == name and value), "")
