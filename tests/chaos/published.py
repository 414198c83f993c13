"""The topics that the pipeline writes, compared with each other and with the index that is made from them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from schemas.json_types import Json

Published = Sequence[tuple[str, bytes]]
"""``ce_id`` and value of every record, in the order of each partition."""
Documents = Sequence[tuple[str, Json]]
"""Id and document of every attempt in the index."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The records about one namespace."""

    attempts: Published = ()
    messages: Published = ()
    device_verdicts: Published = ()
    attempt_counts: Published = ()
    histories: Mapping[str, bytes] = field(default_factory=dict)
    """The latest value of each key."""
    trends: Mapping[str, int] = field(default_factory=dict)
    """Attempts by result, counted from the rows of the latest version of each minute."""


def get_latest_attempts(attempts: Published) -> dict[str, Json]:
    """Return the value of each attempt's greatest version. The clusters here are small: no summary has parts."""
    latest: dict[str, Json] = {}
    for _, text in attempts:
        value = json.loads(text)
        if value["version"] >= latest.get(value["attempt_id"], value)["version"]:
            latest[value["attempt_id"]] = value
    return latest


def compare_topics(
    topics: Topics, documents: Documents, indexed_trends: Mapping[str, int], judged: Mapping[str, bytes]
) -> Iterable[str]:
    """Compare the topics with each other and with the index.

    ``indexed_trends``: as ``Topics.trends``. ``judged``: the device records on the topic of decisions, by ``ce_id``.
    """
    yield from _check_ids(topics)
    latest = get_latest_attempts(topics.attempts)
    yield from _check_documents(latest, documents)
    yield from _check_device_verdicts(topics, latest, judged)
    yield from _check_counts(topics, latest, indexed_trends)
    yield from _check_histories(topics, latest)


def _check_ids(topics: Topics) -> Iterable[str]:
    """Check that a fact has one id, and an id one content: a reader drops repetitions by their id."""
    facts = {
        "summary": (topics.attempts, ("attempt_id", "version", "part")),
        "message": (topics.messages, ("attempt_id", "reason")),
        "device verdicts": (topics.device_verdicts, ("attempt_id", "part")),
        "count": (topics.attempt_counts, ("attempt_id",)),
    }
    for what, (records, names) in facts.items():
        ids: dict[tuple[Any, ...], set[str]] = {}
        contents: dict[str, set[bytes]] = {}
        for id_, text in records:
            value = json.loads(text)
            version = value["adds"]["version"] if what == "count" else None
            ids.setdefault((*(value.get(name) for name in names), version), set()).add(id_)
            contents.setdefault(id_, set()).add(text)
        yield from (f"{what} {fact[0]} has {len(variants)} ids" for fact, variants in ids.items() if len(variants) > 1)
        yield from (
            f"{what} {id_} has {len(variants)} contents" for id_, variants in contents.items() if len(variants) > 1
        )


def _check_documents(latest: Mapping[str, Json], documents: Documents) -> Iterable[str]:
    for attempt, document in documents:
        stored = document.get("repeated") or document.get("summary")
        if stored != latest.get(attempt):
            yield f"document of attempt {attempt}: not the latest on the topic"


def _check_device_verdicts(topics: Topics, latest: Mapping[str, Json], judged: Mapping[str, bytes]) -> Iterable[str]:
    """Check that verdicts of attempts that repeat no other are forwarded, byte for byte."""
    complete = {attempt for attempt, value in latest.items() if "repeats" not in value}
    wanted = {id_: value for id_, value in judged.items() if id_.split("/", 1)[0] in complete}
    forwarded = dict(topics.device_verdicts)
    yield from (f"device verdicts {id_}: not forwarded" for id_ in wanted.keys() - forwarded.keys())
    yield from (f"device verdicts {id_}: forwarded and never published" for id_ in forwarded.keys() - judged.keys())
    yield from (
        f"device verdicts {id_}: forwarded with another content"
        for id_ in wanted.keys() & forwarded.keys()
        if wanted[id_] != forwarded[id_]
    )


def _check_counts(topics: Topics, latest: Mapping[str, Json], indexed: Mapping[str, int]) -> Iterable[str]:
    counted: dict[str, int] = {}
    for _, text in topics.attempt_counts:
        value = json.loads(text)
        version = int(value["adds"]["version"])
        counted[value["attempt_id"]] = max(version, counted.get(value["attempt_id"], version))
    versions = {attempt: value["version"] for attempt, value in latest.items()}
    for attempt, version in versions.items():
        if counted.get(attempt) != version:
            yield f"attempt {attempt}: version {counted.get(attempt)} is counted, not {version}"
    wanted = Counter(value["status"] for value in latest.values())
    for where, rows in (("topic of trends", topics.trends), ("index of trends", indexed)):
        if (by_status := Counter(rows)) != wanted:
            yield f"{where}: {dict(by_status)} attempts by result, not {dict(wanted)}"


def _check_histories(topics: Topics, latest: Mapping[str, Json]) -> Iterable[str]:
    """Check that a pod's history names its latest attempt, in the version that was published last."""
    begun: dict[str, Json] = {}
    for value in latest.values():
        pod = value["pod"]
        key = f"{value['cluster']}/{pod['namespace']}/{pod['name']}/{value['scheduler']}"
        begun[key] = max(begun.get(key, value), value, key=lambda entry: datetime.fromisoformat(entry["started_at"]))
    for key, value in begun.items():
        history = json.loads(topics.histories.get(key, b'{"attempts": [{}]}'))["attempts"][0]
        if (history.get("attempt_id"), history.get("version")) != (value["attempt_id"], value["version"]):
            yield f"history of {key}: not of attempt {value['attempt_id']}"
