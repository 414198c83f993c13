"""Documents hold the event whole, say what they can be found by, and fit the strict mappings."""

from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codec.records import Rejected, encode, encode_value
from schemas.documents.attempts import (
    build_attempt_document,
    build_finding_document,
    build_repeated_document,
    compute_verdict_digest,
    list_reason_codes,
    read_repetition,
    read_summary,
)
from schemas.documents.devices import build_devices_document, read_devices_judged
from schemas.events import AttemptSummarized, BindOutcome, DevicesJudged, FindingReported, PodDescription, Refusal
from schemas.indices import ATTEMPTS, DEVICES, FINDINGS
from tests.support.builders.events import ATTEMPT, STARTED, a_refusal, a_repetition, a_summary, build_devices_judged

MEMORY, NUMA = a_refusal(CardInsufficientMemory=8), a_refusal(NumaNotFit=2, CardCordoned=6)
UNREGISTERED = Refusal(bare="node unregistered", cause="hami.io/node-nvidia-register, byte 17: not JSON")


def to_source(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document as OpenSearch gives it back."""
    source: dict[str, Any] = orjson.loads(encode_value(document))
    return source


def test_a_summary_comes_back_from_its_document() -> None:
    bind = BindOutcome(node="node2", bound=True, ended_at=STARTED)
    summary = a_summary(
        refusals=[MEMORY, UNREGISTERED], refusal=[0, 1], score=[0, 7.4607077], bind=bind, ended_at=STARTED
    )
    again = read_summary(to_source(build_attempt_document(summary, "text")))
    assert isinstance(again, AttemptSummarized)
    assert encode(again) == encode(summary)


def test_devices_judged_come_back_from_their_document() -> None:
    event = build_devices_judged(["node1", "node2"])
    again = read_devices_judged(to_source(build_devices_document(event, encode(event).value)))
    assert isinstance(again, DevicesJudged)
    assert encode(again) == encode(event)


def test_every_field_of_an_attempt_is_declared_in_the_strict_mapping() -> None:
    described = a_summary(description=PodDescription(labels={"team": "vision"}))
    full, repeated = build_attempt_document(described, ""), build_repeated_document(a_repetition())
    assert set(full) | set(repeated) == set(ATTEMPTS.properties)


def test_a_repetition_comes_back_from_its_document_and_is_found_by_what_it_says() -> None:
    repeated = a_repetition(reasons=["CardInsufficientMemory", "NumaNotFit"], text="no available node")
    document = to_source(build_repeated_document(repeated, encode(repeated).value))
    assert read_repetition(document) == repeated
    found_by = {name: document[name] for name in ("status", "reasons", "text", "episode", "repeats", "fit_nodes")}
    assert found_by == {
        "status": "failed",
        "reasons": ["CardInsufficientMemory", "NumaNotFit"],
        "text": "no available node",
        "episode": "1e" * 16,
        "repeats": repeated.repeats,
        "fit_nodes": 0,
    }


def test_an_attempt_names_the_episode_that_its_summary_names_and_else_its_own() -> None:
    earlier = STARTED - timedelta(minutes=1)
    continued = build_attempt_document(a_summary(episode="1e" * 16, episode_started_at=earlier), "")
    assert (continued["episode"], continued["episode_started_at"]) == ("1e" * 16, "2026-11-21T03:05:23.217054Z")
    alone = build_attempt_document(a_summary(), "")
    assert (alone["episode"], alone["episode_started_at"]) == (ATTEMPT["attempt_id"], alone["@timestamp"])


def test_a_summary_of_one_record_is_stored_as_the_bytes_of_its_record() -> None:
    summary = a_summary(changes=["node2: 8/8 CardInsufficientMemory became fit"])
    value = encode(summary).value
    document = build_attempt_document(summary, "", value)
    assert value in encode_value(document)
    assert document["changes"] == ["node2: 8/8 CardInsufficientMemory became fit"]


def test_every_field_of_a_finding_is_declared_in_the_strict_mapping() -> None:
    finding = FindingReported(**ATTEMPT, finding="Imbalance", found_at=STARTED, node="")
    assert set(build_finding_document(finding)) == set(FINDINGS.properties)


def test_every_field_of_a_devices_document_is_declared_in_the_strict_mapping() -> None:
    assert set(build_devices_document(build_devices_judged(), b"{}")) == set(DEVICES.properties)


def test_an_attempt_is_found_by_its_reasons() -> None:
    document = build_attempt_document(a_summary(refusals=[NUMA, UNREGISTERED, MEMORY], refusal=[0, 1]), "free text")
    assert document["reasons"] == ["CardCordoned", "CardInsufficientMemory", "NumaNotFit", "node unregistered"]
    assert (document["@timestamp"], document["namespace"], document["pod"]) == (
        "2026-11-21T03:06:23.217054Z",
        "llm",
        "deepseek-a",
    )


def test_verdicts_that_are_no_refusal_are_no_reason() -> None:
    event = build_devices_judged(verdicts=["picked", "fits", "not reached", "NumaNotFit"])
    assert build_devices_document(event, b"{}")["reasons"] == ["NumaNotFit"]


def test_reason_codes_of_nothing_are_none() -> None:
    assert list_reason_codes([]) == []


@pytest.mark.parametrize("source", [{}, {"summary": None}, {"summary": []}, {"summary": {"attempt_id": 1}}])
def test_a_document_without_a_summary_is_rejected_with_its_place(source: dict[str, Any]) -> None:
    outcome = read_summary(source)
    assert isinstance(outcome, Rejected)
    assert outcome.place.startswith("document.summary")


def test_a_devices_document_without_a_record_is_rejected_with_its_place() -> None:
    outcome = read_devices_judged({"record": {}})
    assert isinstance(outcome, Rejected)
    assert outcome.place == "document.record.cluster"


NODES = ["node1", "node2", "node3"]
REFERENCE = a_summary(NODES, refusals=[MEMORY, NUMA], refusal=[0, 1, -1], verdict=[0, 0, 2], refused_by=[0, 0, -1])


@given(st.permutations([MEMORY, NUMA, UNREGISTERED]), st.permutations(["refused", "fits", "picked", "unregistered"]))
def test_the_order_of_the_tables_does_not_matter_to_the_digest(refusals: list[Refusal], verdicts: list[str]) -> None:
    summary = a_summary(
        NODES,
        refusals=refusals,
        refusal=[refusals.index(MEMORY), refusals.index(NUMA), -1],
        verdicts=verdicts,
        verdict=[verdicts.index(word) for word in ("refused", "refused", "picked")],
        refused_by=[0, 0, -1],
    )
    assert compute_verdict_digest(summary) == compute_verdict_digest(REFERENCE)


def test_the_order_of_counts_and_a_repeated_refusal_do_not_matter_to_the_digest() -> None:
    turned = Refusal(counts=dict(reversed(NUMA.counts.items())), devices=8)
    table = [NUMA, MEMORY, MEMORY, turned]
    summary = a_summary(NODES, refusals=table, refusal=[2, 3, -1], verdict=[0, 0, 2], refused_by=[0, 0, -1])
    assert compute_verdict_digest(summary) == compute_verdict_digest(REFERENCE)


@pytest.mark.parametrize(
    "changed",
    [
        {"started_at": "2027-01-01T00:00:00Z", "attempt_id": "other"},
        {"score": [0, 0, 5]},
        {"version": 99},
        {"judged_devices": 0},
        {"complete": False, "missing": "a record"},
    ],
)
def test_times_scores_and_counts_do_not_matter_to_the_digest(changed: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"refusals": [MEMORY, NUMA], "refusal": [0, 1, -1]}
    plain |= {"verdict": [0, 0, 2], "refused_by": [0, 0, -1]}
    assert compute_verdict_digest(a_summary(NODES, **plain, **changed)) == compute_verdict_digest(REFERENCE)


@pytest.mark.parametrize(
    "changed",
    [
        {"verdict": [0, 2, 0]},
        {"verdict": [0, 0, 1]},
        {"refusal": [1, 0, -1]},
        {"refusal": [0, 0, -1]},
        {"refusal": [0, -1, -1]},
        {"refusals": [a_refusal(CardInsufficientMemory=7), NUMA]},
        {"refusals": [a_refusal(devices=9, CardInsufficientMemory=8), NUMA]},
        {"refusals": [Refusal(bare="CardInsufficientMemory"), NUMA]},
        {"refused_by": [0, -1, -1]},
        {"nodes": ["node1", "node2", "node4"]},
        {"error": "calcScore failed"},
        {"bind": BindOutcome(node="node3", bound=True, ended_at=STARTED)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_verdict_matters_to_the_digest(changed: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"refusals": [MEMORY, NUMA], "refusal": [0, 1, -1], "verdict": [0, 0, 2]}
    plain |= {"nodes": NODES, "refused_by": [0, 0, -1]} | changed
    summary = a_summary(**plain)
    assert compute_verdict_digest(summary) != compute_verdict_digest(REFERENCE)


def test_when_it_was_bound_does_not_matter_to_the_digest_but_the_error_does() -> None:
    def bound(error: str, ended_at: str) -> str:
        return compute_verdict_digest(
            a_summary(bind={"node": "n", "bound": False, "error": error, "ended_at": ended_at})
        )

    assert bound("locked", "2026-01-01T00:00:00Z") == bound("locked", "2026-01-01T00:00:09Z")
    assert bound("locked", "2026-01-01T00:00:00Z") != bound("gone", "2026-01-01T00:00:00Z")


def test_each_node_is_paired_with_every_code_that_it_was_refused_for() -> None:
    summary = a_summary(
        nodes=["a", "b", "c", "d", "e"],
        verdicts=["refused", "picked", "unregistered"],
        verdict=[0, 0, 1, 2, 2],
        refusals=[a_refusal(NumaNotFit=2, CardCordoned=6, CardNotHealth=0), MEMORY, UNREGISTERED],
        refusal=[0, 1, -1, 2, -1],
    )
    assert build_attempt_document(summary, "")["node_reasons"] == [
        "a|CardCordoned",
        "a|NumaNotFit",
        "b|CardInsufficientMemory",
        "d|node unregistered",
        "e|node unregistered",
    ]


def test_codes_without_counts_are_paired_too() -> None:
    summary = a_summary(["a"], refusals=[Refusal(uncounted=["NumaNotFit"])], refusal=[0])
    assert build_attempt_document(summary, "")["node_reasons"] == ["a|NumaNotFit"]
