"""Summaries of filter calls that HAMi itself has answered: its reasons by node, its scores, its choice, its events."""

from datetime import UTC, datetime
from functools import cache

import numpy as np

from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.event_builder import build_events
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision
from engine.summaries.answer import build_schedulerlog
from engine.summaries.fold import summarize
from engine.summaries.messages import build_messages
from schemas.events import AttemptEvent, AttemptSummarized, PodRef
from tests.conformance.__main__ import COMMITTED
from tests.conformance.cluster import build_cluster, get_policy
from tests.conformance.difference import Case
from tests.conformance.kinds import KINDS, judge
from tests.conformance.objects import build_pod

STARTED = datetime(2026, 11, 21, 3, 6, 23, tzinfo=UTC)
ATTEMPT = AttemptRef.start(
    Identity("default", "hami-scheduler"), PodRef(namespace="ml", name="trainer", uid="uid"), STARTED
)
BARE = ("node unregistered", "NodeInsufficientDevice")
"""Reasons of which HAMi's events say nothing, and ours do (`engine/summaries/messages.py`)."""


@cache
def list_summaries() -> list[tuple[Case, AttemptSummarized]]:
    """List the recorded calls that the fit answers as HAMi, with their summaries."""
    kind, summaries = KINDS["filter"], []
    for case in kind.read(COMMITTED / kind.source):
        pod, columns = build_pod(case["pod"]), build_cluster(case)
        decision = decide(columns, pod, case["node_names"], get_policy(case))
        if isinstance(decision, Decision) and judge(kind, case).agrees:
            events = build_events(ATTEMPT, decision, STARTED, "", epoch=1)
            summaries.append((case, summarize([event for event in events if isinstance(event, AttemptEvent)])))
    return summaries


def test_a_summary_has_hamis_reasons_scores_and_choice() -> None:
    assert len(list_summaries()) > 50
    for case, summary in list_summaries():
        recorded = {name: case["out_per_node"].get(name, {"fit": False, "reason": BARE[0]}) for name in summary.nodes}
        log = build_schedulerlog(summary)
        reasons = {node.name: node.containers[-1].reason if node.containers else "" for node in log.filter.nodes}
        # Ours add the cause to a bare reason.
        assert {name: node["reason"] for name, node in recorded.items() if not node["fit"]} == {
            name: reason.partition(": ")[0] for name, reason in reasons.items() if reason
        }, case["id"]
        assert summary.fit_nodes == sum(node["fit"] for node in recorded.values()), case["id"]
        assert summary.chosen == min(case["out_best_nodes"] or [None]), case["id"]
        # As in HAMi's own texts, with two decimal places.
        assert {node.name: f"{node.score:.2f}" for node in log.filter.nodes} == {
            name: f"{np.float32(node['score_g']):.2f}" if node["fit"] else "0.00" for name, node in recorded.items()
        }, case["id"]


def test_event_lines_are_those_that_hami_wrote() -> None:
    compared = 0
    for case, summary in list_summaries():
        recorded = case["out_events"]
        # The recorder's API server did not have every pod; HAMi takes one of several best nodes by chance.
        if not case["out_events_deterministic"] or any(line.endswith(" not found") for line in recorded):
            continue
        messages = [message for record in build_messages(summary) for message in record.list_messages()]
        lines = [f"{line.severity} {line.reason} {line.message}" for line in messages if line.code not in BARE]
        assert sorted(lines) == sorted(recorded), case["id"]
        compared += 1
    assert compared > 30
