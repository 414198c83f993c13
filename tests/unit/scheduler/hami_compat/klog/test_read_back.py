"""The scheduler's own log at level 5 says all that its events say: the reader of HAMi's log reads it completely."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC

import pytest

from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.event_builder import build_events
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED
from engine.summaries.fold import summarize
from engine.summaries.text import write_refusal
from ingest.lines.blocks import Lines, Origin
from ingest.readers.hami.reader import HamiLog
from scheduler.hami_compat.klog import lines
from scheduler.hami_compat.klog.writer import add_headers
from schemas.events import (
    FITS,
    NOT_REACHED,
    PICKED,
    UNREGISTERED,
    AttemptEvent,
    AttemptSummarized,
    DevicesJudged,
    Event,
    PodRef,
)
from schemas.json_types import Json
from tests.support.builders.hami_lines import summarize_attempts
from tests.support.builders.kube_objects import STARTED, a_cluster, a_container, a_device, a_node, a_pod

ATTEMPT = AttemptRef.start(
    Identity("default", "hami-scheduler"), PodRef(namespace="llm", name="trainer", uid="uid-trainer"), STARTED
)


def a_decision(*nodes: Json, pods: Sequence[Json] = (), pod: Json) -> Decision:
    columns = a_cluster(*nodes)
    for placed in pods:
        columns.apply_pod(placed)
    names = [*(node["metadata"]["name"] for node in nodes), "unregistered"]
    answer = decide(columns, pod, names, SchedulingPolicy())
    assert isinstance(answer, Decision)
    return answer


def a_pod_using(device: str, memory: int, node: str) -> Json:
    held = {ASSIGNED_NODE: node, DEVICES_ALLOCATED: f"{device},NVIDIA,{memory},10:;"}
    return a_pod(f"on-{device}", annotations=held)


def summarize_both(decision: Decision) -> tuple[AttemptSummarized, AttemptSummarized, list[Event], list[Event]]:
    """Return the summary of the scheduler's own events and that of its log, and the events of both."""
    published: list[Event] = list(build_events(ATTEMPT, decision, STARTED, epoch=1))
    own_summary = summarize(event for event in published if isinstance(event, AttemptEvent))
    # Times go through the log in the machine's own zone.
    written = b"".join(add_headers(lines.render_decision(ATTEMPT, decision, STARTED, "", 5), STARTED, 1)).splitlines()
    reader = HamiLog(zone=STARTED.astimezone().tzinfo or UTC)
    events = [*reader.feed(Lines(Origin("klog", STARTED), written)), *reader.close()]
    assert reader.counts.lines["unknown"] == 0
    [summary] = summarize_attempts(events)
    return own_summary, summary, published, events


def list_verdicts(summary: AttemptSummarized) -> dict[str, tuple[str, str, int]]:
    texts = [write_refusal(refusal) for refusal in summary.refusals]
    rows = zip(
        summary.nodes,
        summary.verdict.tolist(),
        summary.refusal.tolist(),
        summary.refused_by.tolist(),
        strict=True,
    )
    return {
        # The cause of a refusal stands in another line, which HAMi's events do not have.
        node: (
            word := summary.verdicts[verdict],
            _get_reason(texts, refusal) if word != UNREGISTERED else "",
            container,
        )
        for node, verdict, refusal, container in rows
    }


def _get_reason(texts: Sequence[str], refusal: int) -> str:
    return texts[refusal].partition(":")[0] if refusal >= 0 else ""


def count_judged(events: Sequence[Event]) -> Counter[tuple[str, int, str]]:
    """Count node, container and verdict of the devices that were tried; the log has no line about the others.

    What was taken is ``fits`` here: the log says only of the chosen node which devices the pod got.
    """
    return Counter(
        (row.node, record.container, FITS if row.verdict == PICKED else row.verdict)
        for record in events
        if isinstance(record, DevicesJudged)
        for row in record.iterate_devices(lambda _node, _revision: None)
        if row.verdict != NOT_REACHED
    )


MIXED = (
    a_node("node1", devices=[
        a_device("GPU-dead", health=False), a_device("GPU-full"), a_device("GPU-old", type="NVIDIA-Tesla V100"),
    ]),
    a_node("node2", devices=4),
    a_node("node3", devices=1),
)  # fmt: skip
NUMA = (a_node("node1", devices=[a_device("GPU-0", numa=0), a_device("GPU-1", numa=1), a_device("GPU-2", numa=2)]),)
TWO = a_container("worker", gpus=2, gpumem=20480, gpucores=20)
MORE = a_container("helper", gpus=3, gpumem=30000)


@pytest.mark.parametrize(("nodes", "pod"), [
    (MIXED, a_pod("trainer", [TWO], {"nvidia.com/use-gputype": "A40"}, namespace="llm")),
    (MIXED, a_pod("trainer", [TWO, a_container("log", gpus=0), MORE], namespace="llm")),
    (MIXED, a_pod("trainer", [a_container("big", gpus=9)], namespace="llm")),
    (NUMA, a_pod("trainer", [TWO], {"nvidia.com/numa-bind": "true"}, namespace="llm")),
], ids=["several reasons", "several containers", "too few devices", "several NUMA nodes"])  # fmt: skip
def test_what_the_scheduler_logs_is_what_it_publishes(nodes: tuple[Json, ...], pod: Json) -> None:
    decision = a_decision(*nodes, pods=[a_pod_using("GPU-full", 41645, "node1")], pod=pod)
    own_summary, read, published, events = summarize_both(decision)
    assert read.missing == ""
    assert read.complete
    assert list_verdicts(read) == list_verdicts(own_summary)
    assert read.requests == own_summary.requests
    assert (read.status, read.chosen, sorted(read.picked_devices)) == (
        own_summary.status,
        own_summary.chosen,
        sorted(own_summary.picked_devices),
    )
    assert count_judged(events) == count_judged(published)
    assert re.match("no available node|find fit node", read.scheduler_message or "find fit node")
