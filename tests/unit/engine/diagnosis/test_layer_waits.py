"""Time that a pod spent in each layer, worked out by hand from the moments of its way."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.diagnosis.layer_waits import derive_layer, find_layer, find_layer_of_code, list_waits
from engine.diagnosis.outcome import FoundObstacle, TreeStep
from engine.diagnosis.timeline import Moment
from schemas.answers.diagnosis import Layer, TimelineEvent

START = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
NOW = START + timedelta(seconds=100)


def list_times(layer: Layer | None, **moments: float) -> list[tuple[str, float, float | None, float]]:
    """List the waits as layer, seconds of begin and end, and seconds waited; ``moments`` by event, in seconds."""
    listed = [Moment(_to_event(name), START + timedelta(seconds=seconds), "r") for name, seconds in moments.items()]
    return [
        (wait.layer, _to_seconds(wait.since), _to_seconds(wait.until) if wait.until else None, wait.waited_seconds)
        for wait in list_waits(listed, layer, NOW)
    ]


def _to_event(name: str) -> TimelineEvent:
    return name.replace("_", " ")  # type: ignore[return-value]


def _to_seconds(stamp: str) -> float:
    return (datetime.fromisoformat(stamp) - START).total_seconds()


def test_a_pod_that_runs_has_spent_its_time_in_each_layer_that_it_passed() -> None:
    way = {"queued": 0, "admitted": 10, "created": 5, "released": 20, "tried": 21, "chosen": 30, "bound": 32}
    assert list_times(None, **way, started=40) == [
        ("queue", 0, 10, 10), ("gate", 10, 20, 10), ("nodes", 20, 30, 10), ("bind", 30, 32, 2), ("start", 32, 40, 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "moments", "waits"),
    [
        ("queue", {"created": 5}, [("queue", 5, None, 95)]),
        ("queue", {"owner created": 2}, [("queue", 2, None, 98)]),
        ("queue", {"queued": 7, "created": 5}, [("queue", 7, None, 93)]),
        ("gate", {"created": 5}, [("gate", 5, None, 95)]),
        ("gate", {"created": 5, "admitted": 9}, [("gate", 9, None, 91)]),
        ("nodes", {"created": 5, "tried": 6}, [("nodes", 5, None, 95)]),
        # Without the object the first try is the earliest that is known.
        ("nodes", {"tried": 6}, [("nodes", 6, None, 94)]),
        ("nodes", {"created": 5, "released": 8}, [("gate", 5, 8, 3), ("nodes", 8, None, 92)]),
        # Times of objects are whole seconds: less than one at a gate is none.
        ("nodes", {"created": 5, "released": 5.9}, [("nodes", 5.9, None, 94.1)]),
        ("nodes", {"created": 5, "released": 6}, [("gate", 5, 6, 1), ("nodes", 6, None, 94)]),
        ("bind", {"created": 5, "tried": 6, "chosen": 8}, [("nodes", 5, 8, 3), ("bind", 8, None, 92)]),
        ("bind", {"created": 5, "tried": 6}, [("bind", 6, None, 94)]),
        ("bind", {"created": 5, "tried": 6, "tried again": 9}, [("bind", 9, None, 91)]),
        ("start", {"created": 5, "bound": 20}, [("nodes", 5, 20, 15), ("start", 20, None, 80)]),
        (None, {"created": 5, "bound": 20, "started": 25}, [("nodes", 5, 20, 15), ("start", 20, 25, 5)]),
        (None, {"created": 5, "bound": 20, "rejected": 22}, [("nodes", 5, 20, 15), ("start", 20, 22, 2)]),
        # An end before its begin is rounding.
        (None, {"created": 5, "bound": 4.5}, [("nodes", 5, 5, 0)]),
        # Nobody waits where the pod is not held and nothing ended.
        (None, {"created": 5}, []),
        ("nodes", {}, []),
    ],
)
def test_only_the_layer_that_holds_the_pod_has_no_end(
    layer: Layer | None, moments: dict[str, float], waits: list[tuple[str, float, float | None, float]]
) -> None:
    named = {name.replace(" ", "_"): seconds for name, seconds in moments.items()}
    assert list_times(layer, **named) == waits


@pytest.mark.parametrize(
    ("question", "code", "layer"),
    [
        ("FreeOfGates", "SchedulingGated", "gate"),
        ("FreeOfGates", "KueueWaitsForQuota", "queue"),
        ("FreeOfGates", "KueueAdmittedSuspended", "gate"),
        ("QuotaLeft", "QuotaExceeded", "queue"),
        ("ChoiceHeld", "ChoiceFailed", "bind"),
        ("TakenByNode", "KubeletRefused", "start"),
        ("NodesOpen", "TaintNotTolerated", "nodes"),
        ("PodExists", "PodMissing", None),
    ],
)
def test_an_obstacle_is_in_the_layer_of_its_question(question: str, code: str, layer: str | None) -> None:
    obstacle = FoundObstacle(code)
    # An equal obstacle of another question is another one.
    steps = [
        TreeStep("Starts", "no", obstacles=[FoundObstacle(code, {"a": 1})]),
        TreeStep(question, "no", obstacles=[obstacle]),
    ]
    assert find_layer(steps, obstacle) == layer


@pytest.mark.parametrize(
    ("code", "layer"),
    [("", None), ("KueueAdmitted", "gate"), ("KueueAdmittedSuspended", "gate"), ("KueueQueued", "queue"),
     ("ClaimNotOnNode", "nodes"), ("ClaimMissing", "gate"), ("GangWaits", "gate"), ("PermitTimedOut", "bind"),
     ("EvictedFromNode", "start"), ("CardInsufficientMemory", "nodes")],
)  # fmt: skip
def test_a_code_alone_names_a_layer_for_lists(code: str, layer: str | None) -> None:
    assert find_layer_of_code(code) == layer


@pytest.mark.parametrize(
    ("state", "is_starting", "layer"),
    [("gated", False, "gate"), ("refused", False, "nodes"), ("not judged", False, "nodes"), ("binding", False, "bind"),
     ("placed", True, "start"), ("placed", False, None), ("ended", False, None)],
)  # fmt: skip
def test_a_pod_without_an_obstacle_is_in_the_layer_of_its_state(
    state: str, is_starting: bool, layer: str | None
) -> None:
    assert derive_layer(state, is_starting=is_starting) == layer
