"""Parts of an attempt are the same, remembered of another attempt or derived of it alone."""

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.summaries.retries import derive_digests
from pipeline.worker.derivations import Derivations, Derived
from schemas.codec.records import encode_value
from schemas.events import AttemptSummarized, JudgedObstacle, Owner, PodDescription, PodRef, Reconstruction
from tests.support.builders.events import STARTED, a_refusal, a_report, a_summary
from tests.support.stress import count_examples

JUDGED = [JudgedObstacle(code=code, sentence_en=code, sentence_zh=code) for code in ("Taint", "NodeAffinity")]
CHANGES: dict[str, list[Any]] = {
    "scheduler_message": ["", "0/2 nodes are available: 2 Insufficient cpu.", "pod team-b/other waits for trainer"],
    "nominated": ["", "node1"],
    "description": [
        None, *(PodDescription(owners=[Owner(kind="Job", name=name)]) for name in "ab"), PodDescription(queue="q"),
    ],
    "reports": [
        [a_report()], [a_report(source="hami-log", levels=[4])], [a_report(not_reported=["offered nodes"])],
        [a_report(), a_report(source="kube-events", attempt_id="b")],
    ],
    "pod": [PodRef(namespace="llm", name="trainer"), PodRef(namespace="ml", name="trainer", uid="u")],
    "refusals": [[a_refusal(CardInsufficientMemory=7)], [a_refusal(NumaNotFit=7)]],
    "nodes": [["node1", "node2"], ["node1", "node3"]],
    "refused_nodes": [{}, {"node unsuitable": 3}],
    "error": ["", "no node was offered"],
    "offered_nodes": [2, 3],
    "reconstruction": [None, *(Reconstruction(agreement="equal", obstacle=judged) for judged in JUDGED)],
}  # fmt: skip
"""Values of the fields that an attempt's parts may depend on; the first is that of most attempts."""
BASE = {name: values[0] for name, values in CHANGES.items()}
one_apart = st.sampled_from([BASE | {name: value} for name, values in CHANGES.items() for value in values])


def build(number: int, values: dict[str, Any]) -> AttemptSummarized:
    started = STARTED + timedelta(minutes=number)
    columns: dict[str, Any] = {"verdicts": ["refused"], "verdict": [0, 0], "refusal": [0, 0], "refused_by": [0, 0]}
    reports = [
        report.model_copy(
            update={"started_at": started, "ended_at": started, "attempt_id": f"{report.source}-{number}"}
        )
        for report in values["reports"]
    ]
    own_fields: dict[str, Any] = {
        "attempt_id": reports[0].attempt_id, "started_at": started, "ended_at": started, "version": number,
        "status": "failed", "reports": reports,
    }  # fmt: skip
    return a_summary(**(columns | values | own_fields))


def encode(derived: Derived) -> bytes:
    return encode_value([derived.messages, derived.adds, derived.wait])


@settings(max_examples=count_examples(100), deadline=None)
@given(st.lists(one_apart, min_size=2, max_size=40))
def test_a_remembered_attempt_stands_for_those_that_say_the_same(tries: list[dict[str, Any]]) -> None:
    memory = Derivations(None)
    for number, values in enumerate(tries):
        summary = build(number, values)
        digests = derive_digests(summary)
        derived = memory.derive(summary, digests, is_repetition=True)
        assert encode(derived) == encode(Derivations(None).derive(summary, digests, is_repetition=False))


def test_the_lines_and_counts_of_a_retry_are_not_derived_again() -> None:
    memory = Derivations(None)
    first, retry = (
        memory.derive(summary, derive_digests(summary), is_repetition=True)
        for summary in (build(0, BASE), build(1, BASE))
    )
    assert retry.adds.nodes is first.adds.nodes
    assert retry.messages[0].lines is first.messages[0].lines
