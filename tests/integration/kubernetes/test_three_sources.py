"""Our scheduler, a reader of its log and one of the cluster's events report the same tries: each is one attempt."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dev.embedded.control_plane import ControlPlane
from engine.summaries.answer import build_schedulerlog
from engine.summaries.fold import summarize
from engine.summaries.retries import resolve
from runtime.http.certificate_authority import Authority
from schemas.codec.chunking import join
from schemas.codec.records import decode
from schemas.events import AttemptConcluded, AttemptEvent, AttemptRepeated, AttemptSummarized, AttemptUnchanged
from schemas.topics import ATTEMPTS, DECISIONS
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    DEVICE_MEMORY_MIB,
    LOCK,
    a_gpu_node,
    a_gpu_pod,
    annotate,
    create_pods,
    created_nodes,
)
from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import WORKERS, Pipeline, pipeline
from tests.support.reused_backends import reused_backends
from tests.support.waiting import eventually

NAME = "hami-three"
SOURCES = ["scheduler", "hami-log", "kube-events"]


@contextlib.contextmanager
def running_beside(*commands: list[str], log: Path) -> Iterator[None]:
    """These processes, which end with the block."""
    with contextlib.ExitStack() as stack, log.open("ab") as output:
        for command in commands:
            process = Forked(*command, stdout=output, stderr=output, env=os.environ | {"PYTHONUNBUFFERED": "1"})
            stack.callback(process.wait, timeout=120)
            stack.callback(process.terminate)
        yield


def read_published(running: Pipeline, namespace: str) -> dict[str, AttemptSummarized]:
    """Read the latest summary of each attempt id, joined from its parts."""
    parts: dict[str, list[AttemptSummarized]] = defaultdict(list)
    repeated: dict[str, AttemptRepeated] = {}
    for record in running.read_topic(ATTEMPTS.name):
        event = decode(record.value, record.headers)
        if isinstance(event, AttemptSummarized) and event.pod.namespace == namespace:
            parts[event.attempt_id].append(event)
        elif isinstance(event, AttemptRepeated) and event.pod.namespace == namespace:
            repeated[event.attempt_id] = max(
                repeated.get(event.attempt_id, event), event, key=lambda repetition: repetition.version
            )
    newest = {name: max(part.version for part in summaries) for name, summaries in parts.items()}
    joined = {
        name: join([part for part in summaries if part.version == newest[name]]) for name, summaries in parts.items()
    }
    latest = {name: repetition for name, repetition in repeated.items() if newest.get(name, 0) < repetition.version}
    return joined | {name: resolve(repetition, joined[repetition.repeats]) for name, repetition in latest.items()}


def read_reported(running: Pipeline, namespace: str, reader: str) -> dict[str, AttemptSummarized]:
    """Read by attempt id what only this source reported; an unchanged attempt has the records of the one it repeats."""
    records: dict[str, list[AttemptEvent]] = defaultdict(list)
    for record in running.read_topic(DECISIONS.name):
        event = decode(record.value, record.headers)
        if isinstance(event, AttemptUnchanged) and event.reader == reader and event.pod.namespace == namespace:
            times = {"attempt_id": event.attempt_id, "started_at": event.started_at}
            copies = [earlier.model_copy(update=times) for earlier in records[event.repeats]]
            ended = {"ended_at": event.ended_at}
            records[event.attempt_id] = [
                copy.model_copy(update=ended) if isinstance(copy, AttemptConcluded) else copy for copy in copies
            ]
        elif isinstance(event, AttemptEvent) and event.reader == reader and event.pod.namespace == namespace:
            records[event.attempt_id].append(event)
    return {name: summarize(events) for name, events in records.items()}


def answer_of(summary: AttemptSummarized) -> dict[str, Any]:
    return build_schedulerlog(summary).model_dump()


def test_each_try_is_one_attempt_and_is_answered_as_by_the_scheduler_alone(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    authority, log = Authority.create("the tests' authority"), tmp_path / "readers.log"
    nodes = [a_gpu_node(f"{namespace}-a", devices=1), a_gpu_node(f"{namespace}-b", devices=2, devmem=8192)]
    with (
        reused_backends.taken() as servers,
        pipeline(tmp_path, servers) as running,
        control_plane.open_client() as client,
    ):
        running.start()
        running.wait_ready()
        kafka, kubeconfig = servers.bootstrap_servers, str(control_plane.kubeconfig)
        flags = ("--kafka", kafka, "--v", "5")
        watching = [
            "ingest", "kube-events", "--kubeconfig", kubeconfig, "--namespace", namespace, "--kafka", kafka,
            "--event-reporters", NAME,
        ]  # fmt: skip
        with (
            created_nodes(control_plane, nodes),
            Extender(tmp_path / "extender", control_plane.kubeconfig, authority, NAME, *flags) as extender,
            running_beside(
                watching,
                ["ingest", "hami-log", str(extender.log), "--follow", "--scheduler", NAME, "--kafka", kafka],
                ["pipeline", "events", "--kafka", kafka, "--kubeconfig", kubeconfig, "--linger", "0.2"],
                log=log,
            ),
        ):
            control_plane.start_scheduler(build_scheduler_configuration(extender.url, extender.ca, NAME))
            create_pods(client, namespace, [a_gpu_pod("owner", "nobody", gpumem=1000)])
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            annotate(client, f"/api/v1/nodes/{namespace}-a", {LOCK: f"{now},{namespace},owner"})
            # One after the other: a change of a node or pod makes kube-scheduler try others again at once, and tries
            # closer together than a second can't all be known from its events.
            pods = f"/api/v1/namespaces/{namespace}/pods"
            create_pods(client, namespace, [a_gpu_pod("waits", NAME, gpumem=DEVICE_MEMORY_MIB)])
            eventually(lambda: len(bind_failures(running, namespace)) > 0, extender.log.read_text)
            annotate(client, f"/api/v1/nodes/{namespace}-a", {LOCK: None})
            eventually(lambda: client.get(f"{pods}/waits").json()["spec"].get("nodeName"), extender.log.read_text)
            create_pods(client, namespace, [a_gpu_pod("placed", NAME, gpumem=4000)])
            eventually(lambda: client.get(f"{pods}/placed").json()["spec"].get("nodeName"), extender.log.read_text)
            create_pods(client, namespace, [a_gpu_pod("refused", NAME, gpus=2, gpumem=30000)])
            eventually(
                lambda: {"placed", "refused", "waits"} <= list_complete_pods(running, namespace),
                lambda: f"{describe(running, namespace)}\n{log.read_text()}",
            )
            # As long as it runs, kube-scheduler may try the pod again, and the reader of the log is a moment behind.
            control_plane.scheduler.stop()
            eventually(
                lambda: not list_unread_attempts(running, namespace),
                lambda: f"{describe(running, namespace)}\n{log.read_text()}",
            )
        running.settle_group(WORKERS, [DECISIONS])
        attempts, alone = read_published(running, namespace), read_reported(running, namespace, "")
    by_report = {report.attempt_id: attempt for attempt in attempts.values() for report in attempt.reports}
    assert alone.keys() <= by_report.keys()
    for name, summary in alone.items():
        assert answer_of(by_report[name]) == answer_of(summary)
        assert "hami-log" in {report.source for report in by_report[name].reports}, describe_attempts(attempts)
    # What only the cluster reported is an event about one of several tries that followed each other at once.
    apart = [attempt for attempt in attempts.values() if attempt.reports[0].source != "scheduler"]
    assert len(attempts) == len(alone) + len(apart)
    assert all(attempt.may_duplicate for attempt in apart), describe_attempts(attempts)


def bind_failures(running: Pipeline, namespace: str) -> list[AttemptSummarized]:
    attempts = read_reported(running, namespace, "").values()
    return [attempt for attempt in attempts if attempt.bind and not attempt.bind.bound]


def list_complete_pods(running: Pipeline, namespace: str) -> set[str]:
    """List the pods with an attempt that all sources reported."""
    attempts = read_published(running, namespace).values()
    return {attempt.pod.name for attempt in attempts if [report.source for report in attempt.reports] == SOURCES}


def list_unread_attempts(running: Pipeline, namespace: str) -> set[str]:
    """List the scheduler's attempts that the reader of its log has not reported yet."""
    sources = {
        report.attempt_id: {other.source for other in attempt.reports}
        for attempt in read_published(running, namespace).values()
        for report in attempt.reports
    }
    return {name for name in read_reported(running, namespace, "") if "hami-log" not in sources.get(name, set())}


def describe(running: Pipeline, namespace: str) -> str:
    return describe_attempts(read_published(running, namespace))


def describe_attempts(attempts: dict[str, AttemptSummarized]) -> str:
    return "\n".join(sorted(map(_describe, attempts.values())))


def _describe(summary: AttemptSummarized) -> str:
    reports = [(report.source, report.started_at, report.ended_at, report.bind_ended_at) for report in summary.reports]
    return f"{summary.pod.name} {summary.status} {summary.chosen} {summary.may_duplicate} {reports}"
