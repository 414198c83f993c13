"""The latest state of a pod: whatever the order in which its facts are read, the latest one counts."""

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from schemas.documents.pod_states import PodStateDocument, derive_state_after_attempt, derive_state_after_observation
from schemas.events import (
    AttemptRepeated,
    BindOutcome,
    Owner,
    PodDescription,
    PodObserved,
    PodRef,
    PodWait,
    Request,
)
from schemas.indices import POD_STATES
from tests.support.builders.events import STARTED, a_repetition, a_summary

POD = PodRef(namespace="llm", name="a", uid="u1")
TRAIN = PodDescription(owners=[Owner(kind="Job", name="train")], queue="blue", created_at=STARTED)


WAIT = PodWait(
    code="CardInsufficientMemory", devices=4, models=["H800"], pools=[], nearest_nodes=["node1"], reasons={},
    asked=Request(container="main", vendor="NVIDIA", count=4, memory_mib=20_000),
)  # fmt: skip


def observe(seconds: float, **fields: Any) -> PodStateDocument | None:
    observed_at = STARTED + timedelta(seconds=seconds)
    return derive_state_after_observation(
        PodObserved.model_validate(
            {"cluster": "default", "pod": POD, "observed_at": observed_at, "phase": "Pending", **fields}
        )
    )


def test_a_pod_that_no_scheduler_tries_waits_since_it_was_created_until_its_first_attempt() -> None:
    gated = PodObserved(cluster="default", pod=POD, observed_at=STARTED - timedelta(seconds=30), phase="Pending",
                        scheduler="kube-scheduler", description=TRAIN)  # fmt: skip
    document = derive_state_after_observation(gated, WAIT)
    assert document
    assert document.fields["state"] == "waiting"
    assert document.fields["group"] == "llm/Job/train"
    assert (document.fields["queue"], document.fields["obstacle"]) == ("blue", "CardInsufficientMemory")
    assert document.fields["first_judged_at"] == document.fields["created_at"]
    assert "attempt_id" not in document.fields
    assert set(document.fields) <= {*POD_STATES.properties}
    assert get_latest_state(document, judge_attempt(0, status="succeeded")) == "placed"
    assert document.version < judge_attempt(0).version


def test_an_observation_without_a_word_of_the_scheduler_replaces_no_attempt() -> None:
    """The condition of an attempt comes after it, and the pod may be observed in between."""
    silent = PodObserved(cluster="default", pod=POD, observed_at=STARTED + timedelta(seconds=60), phase="Pending",
                         scheduler="kube-scheduler", description=TRAIN)  # fmt: skip
    document = derive_state_after_observation(silent, WAIT)
    assert document
    assert document.version < judge_attempt(1).version
    # Its node's refusal is later than every attempt.
    refused = silent.model_copy(update={"phase": "Failed", "node": "n-1"})
    document = derive_state_after_observation(refused, WAIT)
    assert document
    assert document.version > judge_attempt(59).version


def judge_attempt(seconds: float, **fields: Any) -> PodStateDocument:
    return derive_state_after_attempt(a_summary(pod=POD, started_at=STARTED + timedelta(seconds=seconds), **fields))


def get_latest_state(*candidates: PodStateDocument | None) -> str:
    """Return the state that an index keeps which takes the greatest version of a document."""
    documents = [document for document in candidates if document]
    assert {document.id for document in documents} == {"default/llm/a"}
    return str(max(documents, key=lambda document: document.version).fields["state"])


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, None),
        ({"node": "node1"}, "placed"),
        ({"phase": "Succeeded", "node": "node1"}, "ended"),
        ({"phase": "Failed"}, "ended"),
        ({"deleted": True}, "deleted"),
    ],
)
def test_a_pod_that_was_seen_placed_ended_or_deleted_waits_no_longer(fields: dict[str, Any], state: str | None) -> None:
    document = observe(1, **fields)
    assert (document.fields["state"] if document else None) == state


def test_the_latest_fact_counts_in_whatever_order_facts_are_read() -> None:
    bound = BindOutcome(node="node1", bound=True, ended_at=STARTED)
    facts = [
        judge_attempt(0),
        judge_attempt(1, status="succeeded", bind=bound),
        observe(2, node="node1"),
        observe(3, deleted=True),
        judge_attempt(4),
    ]
    for some in permutations(facts):
        assert get_latest_state(*some) == "waiting", "a pod of the same name was made again"
        assert get_latest_state(*(fact for fact in some if fact is not facts[-1])) == "deleted"


def test_what_becomes_of_an_attempt_counts_more_than_its_beginning() -> None:
    bound = BindOutcome(node="node1", bound=True, ended_at=STARTED + timedelta(seconds=1))
    begun, ended = judge_attempt(0, status="pending"), judge_attempt(0, status="succeeded", bind=bound)
    assert get_latest_state(ended, begun) == "placed"
    assert get_latest_state(begun, observe(0, deleted=True)) == "deleted"


def test_a_waiting_pod_is_described_with_what_lists_need() -> None:
    state = derive_state_after_attempt(
        a_summary(pod=POD, description=TRAIN, attempts=3, first_judged_at=STARTED)
    ).fields
    assert state["group"] == "llm/Job/train"
    assert (state["workload"], state["queue"], state["attempts"]) == ("Job/train", "blue", 3)
    assert state["first_judged_at"] == state["created_at"] == "2026-11-21T03:06:23.217054Z"
    assert judge_attempt(0).fields["group"] == "llm/Pod/a"


def test_a_repetition_says_as_much_as_the_attempt_that_it_repeats() -> None:
    first = STARTED - timedelta(hours=1)
    repeated: AttemptRepeated = a_repetition(pod=POD, description=TRAIN, first_judged_at=first, attempts=9)
    state = derive_state_after_attempt(repeated).fields
    assert (state["workload"], state["attempts"], state["state"]) == ("Job/train", 9, "waiting")
    assert datetime.fromisoformat(state["first_judged_at"]) == first
    assert state["reasons"] == repeated.reasons
    without = derive_state_after_attempt(repeated.model_copy(update={"first_judged_at": None})).fields
    assert datetime.fromisoformat(without["first_judged_at"]) == repeated.episode_started_at


def test_the_devices_of_equal_pods_can_be_summed_over_the_time_that_they_wait() -> None:
    first = STARTED - timedelta(hours=1)
    state = derive_state_after_attempt(a_repetition(pod=POD, first_judged_at=first, wait=WAIT)).fields
    assert (state["obstacle"], state["obstacle_group"]) == (
        "CardInsufficientMemory",
        "CardInsufficientMemory|4 x 20,000 MiB",
    )
    now = STARTED + timedelta(hours=1)
    waited = state["asked_devices"] * now.timestamp() - state["asked_devices_seconds"]
    assert waited / 3600 == pytest.approx(8), "four devices for two hours"


def test_every_field_has_a_mapping() -> None:
    fields = derive_state_after_attempt(a_summary(pod=POD, description=TRAIN, wait=WAIT)).fields.keys()
    seen_fields = observe(0, deleted=True, description=TRAIN)
    assert seen_fields is not None
    assert fields | seen_fields.fields.keys() == POD_STATES.properties.keys()
