"""Pods that their node refused, until their owner has made others."""

from datetime import UTC, datetime

from engine.diagnosis.waiting import derive_wait_without_attempt
from ingest.readers.kube import KubeEvents
from schemas.documents.pod_states import derive_state_after_observation
from schemas.events import PodObserved
from schemas.json_types import Json


def to_stamp(second: int) -> str:
    return f"2026-01-01T12:00:{second:02}Z"


def a_pod(name: str, created: int, *, refused: int | None = None, owner: str = "train") -> Json:
    """A pod of a Job, made at a second; ``refused``: the second at which its node refused it."""
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "controller": True}] if owner else []
    metadata = {
        "name": name, "namespace": "ml", "uid": name, "creationTimestamp": to_stamp(created), "resourceVersion": "1",
        "ownerReferences": owners,
    }  # fmt: skip
    status: Json = {"phase": "Pending"}
    if refused is not None:
        status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no device",
                  "startTime": to_stamp(refused)}  # fmt: skip
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}


def read(*pods: Json) -> list[PodObserved]:
    reader = KubeEvents()
    events = [event for pod in pods for event in reader.read_object("pod", pod, 0.0)]
    return [event for event in events if isinstance(event, PodObserved)]


def find_state(events: list[PodObserved], name: str) -> str:
    """Find the state that the index has of a pod: of the document with the greatest version."""
    documents = [
        document
        for event in events
        if event.pod.name == name
        and (document := derive_state_after_observation(event, derive_wait_without_attempt(event)))
    ]
    return str(max(documents, key=lambda document: document.version).fields["state"])


def test_a_refused_pod_waits_until_its_owner_has_made_another() -> None:
    refused = a_pod("a", 1, refused=2)
    assert find_state(read(refused), "a") == "waiting"
    events = read(refused, a_pod("b", 3))
    assert find_state(events, "a") == "ended"
    assert [event.replaced_by for event in events if event.pod.name == "a"] == ["", "b"]


def test_it_makes_no_difference_which_pod_is_read_first() -> None:
    assert find_state(read(a_pod("b", 3), a_pod("a", 1, refused=2)), "a") == "ended"


def test_a_pod_of_the_same_batch_replaces_nothing() -> None:
    assert find_state(read(a_pod("a", 1, refused=5), a_pod("b", 3)), "a") == "waiting"


def test_a_pod_of_another_owner_replaces_nothing() -> None:
    assert find_state(read(a_pod("a", 1, refused=2), a_pod("b", 3, owner="other")), "a") == "waiting"
    assert find_state(read(a_pod("a", 1, refused=2, owner=""), a_pod("b", 3, owner="")), "a") == "waiting"


def test_of_a_chain_of_refusals_only_the_last_one_waits() -> None:
    events = read(a_pod("a", 1, refused=2), a_pod("b", 3, refused=4), a_pod("c", 5, refused=6))
    assert [find_state(events, name) for name in "abc"] == ["ended", "ended", "waiting"]


def test_a_replaced_pod_is_still_replaced_when_it_is_read_again() -> None:
    refused, other = a_pod("a", 1, refused=2), a_pod("b", 3)
    assert [event.replaced_by for event in read(refused, other, refused) if event.pod.name == "a"] == ["", "b"]


def test_a_deleted_refusal_is_forgotten() -> None:
    reader = KubeEvents()
    (event,) = reader.read_object("pod", a_pod("a", 1, refused=2), 0.0)
    assert isinstance(event, PodObserved)
    reader.forget_pod(event.pod, datetime(2026, 1, 1, 12, 1, tzinfo=UTC))
    assert [type(other) for other in reader.read_object("pod", a_pod("b", 3), 0.0)] == [PodObserved]
