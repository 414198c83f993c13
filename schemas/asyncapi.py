"""The topics and their messages as an AsyncAPI 3.0 document, for tools that read topics without our code."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .codec.records import CONTENT_TYPE
from .codec.trace_context import PARENT_HEADER, STATE_HEADER
from .events import EVENTS, Event
from .topics import (
    ALERTS,
    ATTEMPT_COUNTS,
    ATTEMPTS,
    CLOCK,
    DEAD_LETTER_HEADERS,
    DEAD_LETTERS,
    DECISIONS,
    DEVICE_VERDICTS,
    FINDINGS,
    MESSAGES,
    NODE_STATES,
    NODES,
    POD_HISTORIES,
    PODS,
    RAW_LOGS,
    SCHEDULERS,
    TOPICS,
    TRENDS,
    Topic,
)

SCHEMA_FORMAT: Final = "application/schema+json;version=draft-07"
"""AsyncAPI 3.0 names no later draft; the schemas use nothing of 2020-12 but the keyword ``$defs``."""

# The version of AsyncAPI's Kafka binding, which is numbered apart from AsyncAPI itself.
_BINDING: Final = "0.5.0"
_HEADERS: Final = {
    "ce_specversion": {"const": "1.0"},
    "ce_id": {"description": "Equal for two records of the same fact, so that a reader can drop the second."},
    "ce_type": {},
    "ce_source": {"format": "uri-reference", "description": "Who reports it."},
    "ce_time": {"format": "date-time", "description": "When it happened, in UTC to the microsecond."},
    "ce_subject": {
        "description": "What it is about, in its cluster: ``namespace/name`` of a pod, the name of a node; of others "
        "the rest of the key."
    },
    # CloudEvents' Kafka binding names this attribute without the prefix ``ce_``.
    "content-type": {"const": CONTENT_TYPE},
}
_TRACED: Final = {
    PARENT_HEADER: {
        "type": "string",
        "description": "Of records that somebody traces: W3C's traceparent, as CloudEvents' extension has it.",
    },
    STATE_HEADER: {
        "type": "string",
        "description": "W3C's tracestate beside it, where the caller's tracing has one; cut to 512 bytes.",
    },
}
_OPERATIONS: Final = (
    ("publishDecisions", "send", DECISIONS, "Schedulers, and readers of other schedulers' logs, publish decisions."),
    (
        "publishPods",
        "send",
        PODS,
        "Schedulers, and readers of clusters, publish phases, nodes and ends of pods, and owners that can't make pods.",
    ),
    ("publishSchedulers", "send", SCHEDULERS, "Schedulers, and readers of their logs, publish versions and settings."),
    ("publishNodes", "send", NODES, "Schedulers publish which devices nodes offer."),
    (
        "publishNodeStates",
        "send",
        NODE_STATES,
        "Schedulers publish what is in use on each node, before the verdicts that refer to it.",
    ),
    ("foldDecisions", "receive", DECISIONS, "The pipeline folds the records of an attempt into its summary."),
    ("publishAttempts", "send", ATTEMPTS, "The pipeline publishes every attempt as a whole."),
    ("publishMessages", "send", MESSAGES, "The pipeline publishes the event texts."),
    ("readAttempts", "receive", ATTEMPTS, "The API keeps the latest attempts in memory."),
    ("followPods", "receive", PODS, "The pipeline keeps which pod is where, and since when."),
    ("shipLines", "send", RAW_LOGS, "Fluent Bit, Vector or the OpenTelemetry Collector ship the lines of schedulers."),
    ("readLines", "receive", RAW_LOGS, "The readers of logs turn the lines into decisions."),
    ("publishFindings", "send", FINDINGS, "The pipeline publishes contradictions that it found."),
    (
        "publishAlerts",
        "send",
        ALERTS,
        "The pipeline publishes alerts that fire and alerts that are resolved.",
    ),
    (
        "publishDeviceVerdicts",
        "send",
        DEVICE_VERDICTS,
        "The pipeline forwards the verdicts on devices of attempts that say something new.",
    ),
    ("writePodHistories", "send", POD_HISTORIES, "The pipeline keeps what the next attempt of a pod is compared with."),
    ("readPodHistories", "receive", POD_HISTORIES, "A worker reads those of a partition at its first attempt."),
    ("publishAttemptCounts", "send", ATTEMPT_COUNTS, "The pipeline publishes what each attempt adds to its minute."),
    ("countAttempts", "receive", ATTEMPT_COUNTS, "The pipeline adds them up."),
    ("publishTrends", "send", TRENDS, "The pipeline publishes the counts of each minute."),
    (
        "probeClock",
        "send",
        CLOCK,
        "Each process of the pipeline that judges times asks the broker for its own.",
    ),
    ("deadLetter", "send", DEAD_LETTERS, "The pipeline publishes records that it can't process."),
)

# Raw lines are other programs' JSON, dead letters any bytes, and a probe has none: they have no event type to name.
_OTHER_MESSAGES: Final = {RAW_LOGS.name: "RawLine", DEAD_LETTERS.name: "DeadLetter", CLOCK.name: "Probe"}

_SECURITY_SCHEMES: Final = {
    "clientCertificate": {"type": "X509", "description": "TLS with a certificate of the client."},
    "scram": {"type": "scramSha512", "description": "TLS, with user and password."},
    "plain": {"type": "plain", "description": "TLS, with user and password; the broker sees the password."},
}
"""Credentials of a client. OAUTHBEARER is a fourth way, which AsyncAPI describes by the URLs of an issuer."""


def build_document(examples: Mapping[str, Any]) -> dict[str, Any]:
    """Build the document as plain dictionaries and lists. ``examples`` has a payload for each event type."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "schedulerlog",
            "version": "1",
            "description": (
                "Every GPU scheduling decision as a structured event. A record is JSON with CloudEvents 1.0 headers in "
                "binary mode. Facts per node or per device lie in columns: arrays of equal length. Fields are "
                "only ever added; readers ignore what they do not know. docs/events.md shows how to read them."
            ),
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": CONTENT_TYPE,
        "servers": {
            "kafka": _describe_server("kafka"),
            "securedKafka": _describe_server("kafka-secure", *_SECURITY_SCHEMES),
        },
        "channels": {_name(topic): _describe_channel(topic) for topic in TOPICS},
        "operations": {
            name: _describe_operation(action, topic, summary) for name, action, topic, summary in _OPERATIONS
        },
        "components": {
            "messages": {event.__name__: _describe_message(event, examples[event.TYPE]) for event in EVENTS}
            | _list_other_messages(),
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _describe_server(protocol: str, *security_schemes: str) -> dict[str, Any]:
    bootstrap = {"default": "localhost:9092", "description": "host:port of any broker"}
    server = {"host": "{bootstrap}", "protocol": protocol, "variables": {"bootstrap": bootstrap}}
    security = [{"$ref": f"#/components/securitySchemes/{name}"} for name in security_schemes]
    return server | ({"security": security} if security else {})


def _name(topic: Topic) -> str:
    return topic.name.removeprefix("schedulerlog.")


def _list_messages(topic: Topic) -> Sequence[str]:
    return [event.__name__ for event in topic.events] or [_OTHER_MESSAGES[topic.name]]


def _describe_channel(topic: Topic) -> dict[str, Any]:
    kafka = {
        "topic": topic.name,
        "partitions": topic.partitions,
        "topicConfiguration": {
            "cleanup.policy": ["compact", "delete"] if topic.compacted_after else ["delete"],
            # AsyncAPI's schema demands integers here; ``total_seconds`` gives a float.
            "retention.ms": int(topic.retention.total_seconds() * 1000),
            "max.message.bytes": topic.max_message_bytes,
        },
        "bindingVersion": _BINDING,
    }
    return {
        "address": topic.name,
        "description": f"{topic.description}. Key: {topic.key}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _list_messages(topic)},
        "bindings": {"kafka": kafka},
    }


def _describe_operation(action: str, topic: Topic, text: str) -> dict[str, Any]:
    channel = f"#/channels/{_name(topic)}"
    messages = [{"$ref": f"{channel}/messages/{name}"} for name in _list_messages(topic)]
    return {"action": action, "channel": {"$ref": channel}, "summary": text, "messages": messages}


def _describe_message(event: type[Event], example: Any) -> dict[str, Any]:
    text, _, more = (event.__doc__ or "").partition("\n\n")
    topic = next(topic for topic in TOPICS if event in topic.events)
    headers = {name: {"type": "string"} | schema for name, schema in _HEADERS.items()}
    headers["ce_type"] |= {"const": event.TYPE}
    message = {
        "name": event.TYPE,
        "summary": " ".join(text.split()),
        "description": " ".join(more.split()),
        "contentType": CONTENT_TYPE,
        "headers": {"type": "object", "required": list(headers), "properties": headers | _TRACED},
        "payload": {"schemaFormat": SCHEMA_FORMAT, "schema": {"$ref": f"./{event.TYPE}.schema.json"}},
        "bindings": {"kafka": _describe_key(topic)},
        "examples": [{"payload": example}],
    }
    # An event whose docstring is one paragraph has no description; an empty one would only be noise to renderers.
    return {key: value for key, value in message.items() if value}


def _list_other_messages() -> dict[str, Any]:
    """Build the messages of the topics without events."""
    return {"RawLine": _describe_raw_line(), "DeadLetter": _describe_dead_letter(), "Probe": _describe_probe()}


def _describe_dead_letter() -> dict[str, Any]:
    headers = {name: {"type": "string", "description": text} for name, text in DEAD_LETTER_HEADERS.items()}
    return {
        "name": "dead letter",
        "summary": "A record that could not be understood; its own headers follow those that say why.",
        "contentType": "application/octet-stream",
        "headers": {"type": "object", "required": list(headers), "properties": headers},
        "payload": {"description": "The value as it came, byte for byte."},
        "bindings": {"kafka": _describe_key(DEAD_LETTERS)},
    }


def _describe_probe() -> dict[str, Any]:
    return {
        "name": "probe",
        "summary": "An empty record: its timestamp shows its sender the broker's time.",
        "contentType": "application/octet-stream",
        "payload": {"description": "Nothing.", "type": "string", "maxLength": 0},
        "bindings": {"kafka": _describe_key(CLOCK)},
    }


def _describe_raw_line() -> dict[str, Any]:
    return {
        "name": "raw line",
        "summary": "One line of a container's log, or several, in the JSON of the program that ships it.",
        "contentType": CONTENT_TYPE,
        "payload": {"description": "What Fluent Bit, Vector or the OpenTelemetry Collector (otlp_json) write."},
        "bindings": {"kafka": _describe_key(RAW_LOGS)},
    }


def _describe_key(topic: Topic) -> dict[str, Any]:
    return {"key": {"type": "string", "description": topic.key}, "bindingVersion": _BINDING}
