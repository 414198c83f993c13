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


def seen(seconds: float, **fields: Any) -> PodStateDocument | None:
    at = STARTED + timedelta(seconds=seconds)
    return derive_state_after_observation(
        PodObserved.model_validate({"cluster": "default", "pod": POD, "observed_at": at, "phase": "Pending", **fields})
    )


def tried(seconds: float, **fields: Any) -> PodStateDocument:
    return derive_state_after_attempt(a_summary(pod=POD, started_at=STARTED + timedelta(seconds=seconds), **fields))


def latest_of(*found: PodStateDocument | None) -> str:
    """The state that an index keeps which takes the greatest version of a document."""
    documents = [document for document in found if document]
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
    found = seen(1, **fields)
    assert (found.fields["state"] if found else None) == state


def test_the_latest_fact_counts_in_whatever_order_facts_are_read() -> None:
    bound = BindOutcome(node="node1", bound=True, ended_at=STARTED)
    facts = [tried(0), tried(1, status="succeeded", bind=bound), seen(2, node="node1"), seen(3, deleted=True), tried(4)]
    for some in permutations(facts):
        assert latest_of(*some) == "waiting", "a pod of the same name was made again"
        assert latest_of(*(fact for fact in some if fact is not facts[-1])) == "deleted"


def test_what_becomes_of_an_attempt_counts_more_than_its_beginning() -> None:
    bound = BindOutcome(node="node1", bound=True, ended_at=STARTED + timedelta(seconds=1))
    begun, ended = tried(0, status="pending"), tried(0, status="succeeded", bind=bound)
    assert latest_of(ended, begun) == "placed"
    assert latest_of(begun, seen(0, deleted=True)) == "deleted"


def test_a_waiting_pod_is_described_with_what_lists_need() -> None:
    state = derive_state_after_attempt(
        a_summary(pod=POD, description=TRAIN, attempts=3, first_judged_at=STARTED)
    ).fields
    assert state["group"] == "llm/Job/train"
    assert (state["workload"], state["queue"], state["attempts"]) == ("Job/train", "blue", 3)
    assert state["first_judged_at"] == state["created_at"] == "2026-11-21T03:06:23.217054Z"
    assert tried(0).fields["group"] == "llm/Pod/a"


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
    at = STARTED + timedelta(hours=1)
    waited = state["asked_devices"] * at.timestamp() - state["asked_devices_seconds"]
    assert waited / 3600 == pytest.approx(8), "four devices for two hours"


def test_every_field_has_a_mapping() -> None:
    fields = derive_state_after_attempt(a_summary(pod=POD, description=TRAIN, wait=WAIT)).fields.keys()
    seen_fields = seen(0, deleted=True, description=TRAIN)
    assert seen_fields is not None
    assert fields | seen_fields.fields.keys() == POD_STATES.properties.keys()
