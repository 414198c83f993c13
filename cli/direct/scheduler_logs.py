"""The log of the scheduler that tries a pod, read from the scheduler's own pods: what it decided, node by node.

Only the end of the log is read, bounded in lines, bytes and time. A scheduler's pod is recognised by its name or
labels, but not in the namespace of the pod in question: a user who may create pods there could write the log.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

import orjson

from cli.client.problems import NotAllowed, Problem
from cli.direct.reader import ObjectReader
from engine.diagnosis.logged_facts import EarlierAttempts, LoggedFact, UnfinishedAttempt
from engine.hami.annotations import SCHEDULER_ROLE
from engine.snapshot import kinds
from ingest.cases.read_case import ClusterCase
from ingest.cases.read_log import read_log_text
from ingest.cases.saved_attempts import LoggedAttempts
from ingest.errors import MistakeError
from ingest.readers.registry import NO_FACTS
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects

MAX_LINES: Final = 5_000
MAX_BYTES: Final = 8 * 1024**2
MAX_AGE: Final = timedelta(hours=1)
_MAX_PODS: Final = 2
"""Replicas that are read: only one of them leads."""
_WORDS: Final = {"default-scheduler": "kube-scheduler", "": "kube-scheduler"}
_SCHEDULER: Final = "scheduler"
_CONTAINERS: Final = ("vgpu-scheduler-extender", "kube-scheduler", "volcano-scheduler", "scheduler")
"""Containers whose log has the decisions, the most detailed first."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """Reading of a scheduler's log about one pod."""

    source: str
    """Namespace and name of the scheduler's pod; empty if none was recognised."""
    problem: Problem | None = None
    tried_at: datetime | None = None
    """Start of the pod's latest attempt in the log; None if the log has none."""
    attempts: LoggedAttempts | None = None
    """The pod's attempts in the log."""


def read_scheduler_log(reader: ObjectReader, case: ClusterCase, pod: Fields, others: Iterable[Fields]) -> LogReading:
    """Read what the log of the pod's scheduler, which is one of ``others``, says about the pod; add it to the case."""
    log = LogReading("")
    for scheduler in list(_list_schedulers(others, pod))[:_MAX_PODS]:
        namespace, name = get_text(scheduler, "metadata", "namespace"), get_text(scheduler, "metadata", "name")
        log = LogReading(f"{namespace}/{name}")
        text = reader.get_text(_build_path(namespace, name, _choose_container(scheduler)))
        if isinstance(text, Problem):
            log = LogReading(log.source, text)
            if isinstance(text, NotAllowed):
                return log
            continue
        attempts = _read_attempts(case, pod, text.decode("utf-8", "replace"))
        if tried_at := attempts.add_to(case.pods):
            return LogReading(log.source, None, tried_at, attempts)
    return log


def _list_schedulers(others: Iterable[Fields], pod: Fields) -> Iterator[Fields]:
    """List the running pods of the scheduler that the pod names, the leader first."""
    named = get_text(pod, "spec", "schedulerName")
    word = _WORDS.get(named, named)
    candidates = [
        entry
        for entry in others
        if get_text(entry, "metadata", "namespace") != get_text(pod, "metadata", "namespace")
        and get_text(entry, "status", "phase") == "Running"
        and _is_scheduler(entry, word)
    ]
    yield from sorted(candidates, key=lambda entry: get_text(entry, "metadata", "labels", SCHEDULER_ROLE) != "leader")


def _is_scheduler(entry: Fields, word: str) -> bool:
    name = get_text(entry, "metadata", "name")
    labels: Iterable[object] = get_object(entry, "metadata", "labels").values()
    return _SCHEDULER in name and (word in name or word in labels)


def _choose_container(scheduler: Fields) -> str:
    names = [get_text(container, "name") for container in iterate_objects(scheduler, "spec", "containers")]
    return next((name for name in _CONTAINERS if name in names), next(iter(names), ""))


def _build_path(namespace: str, name: str, container: str) -> str:
    query = {
        "container": container,
        "tailLines": str(MAX_LINES),
        "limitBytes": str(MAX_BYTES),
        "sinceSeconds": str(int(MAX_AGE.total_seconds())),
    }
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/log?{urlencode(query)}"


def _read_attempts(case: ClusterCase, pod: Fields, text: str) -> LoggedAttempts:
    """Read the log's attempts of the pod."""
    attempts = LoggedAttempts(f"{get_text(pod, 'metadata', 'namespace')}/{get_text(pod, 'metadata', 'name')}")
    nodes = orjson.dumps({"kind": "NodeList", "items": case.objects.select(kinds.NODE)})

    def note(fact: EarlierAttempts | LoggedFact | UnfinishedAttempt) -> None:
        # The end of this log is not the end of what is known: the cluster was read after it.
        if isinstance(fact, UnfinishedAttempt):
            attempts.note(fact)

    with suppress(MistakeError):
        read_log_text(text, attempts.take, NO_FACTS._replace(note=note, node_list=nodes))
    return attempts
