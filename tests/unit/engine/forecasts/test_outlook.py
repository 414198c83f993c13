"""The answer about a start: the order first, then the forecast where its record proves it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from engine.forecasts.outlook import PodsBefore, build_outlook, count_right
from schemas.codec.records import format_rfc3339
from schemas.events import PodRef
from schemas.forecasts import ForecastRecord, StartForecast
from schemas.placements import PodPlacement
from tests.support.builders.events import STARTED

FIRST = PodsBefore(0, [], is_current=True)
PROVED = ForecastRecord(16, 20)


def a_forecast(**fields: Any) -> StartForecast:
    """Build a forecast of a start between one and two hours later."""
    plain: dict[str, Any] = {
        "cluster": "default", "pod": PodRef(namespace="llm", name="a", uid="u1"), "given_at": STARTED,
        "obstacle": "CardInsufficientMemory", "basis": "workload", "after": ["llm/train-x"],
        "earliest": STARTED + timedelta(hours=1), "latest": STARTED + timedelta(hours=2),
    }  # fmt: skip
    return StartForecast.model_validate(plain | fields)


def without_interval(missing: str) -> StartForecast:
    return a_forecast(missing=missing, basis="", earliest=None, latest=None)


def a_start(seconds: float, *forecasts: StartForecast) -> PodPlacement:
    started_at = STARTED + timedelta(seconds=seconds)
    pod = PodRef(namespace="llm", name="a", uid="u1")
    return PodPlacement(
        id="p", cluster="default", pod=pod, node="node1", started_at=started_at, forecasts=list(forecasts)
    )


@pytest.mark.parametrize(
    ("right", "judged", "is_shown"), [(16, 20, True), (15, 20, False), (19, 19, False), (40, 50, True)]
)
def test_an_interval_is_shown_from_four_fifths_of_twenty_on(right: int, judged: int, is_shown: bool) -> None:
    outlook = build_outlook(FIRST, a_forecast(), ForecastRecord(right, judged), STARTED)
    assert outlook
    assert (outlook.earliest is not None) is is_shown
    assert f"{right} of " in outlook.sentence.en
    assert (outlook.right, outlook.judged) == (right, judged)


def test_the_sentence_has_the_interval_the_pods_and_the_record() -> None:
    outlook = build_outlook(FIRST, a_forecast(), PROVED, STARTED)
    assert outlook
    assert outlook.sentence.en == (
        f"Likely to start between {STARTED + timedelta(hours=1):%Y-%m-%d %H:%M} UTC and "
        f"{STARTED + timedelta(hours=2):%Y-%m-%d %H:%M} UTC, when this pod ends: llm/train-x. "
        "16 of the last 20 such forecasts were right."
    )
    assert "llm/train-x" in outlook.sentence.zh


def test_of_an_unproved_record_the_sentence_has_the_numbers_and_no_time() -> None:
    outlook = build_outlook(FIRST, a_forecast(), ForecastRecord(12, 20), STARTED)
    assert outlook
    assert outlook.sentence.en.startswith("No forecast of its start: 12 of 20 such forecasts were right")
    assert "UTC" not in outlook.sentence.en + outlook.sentence.zh


def test_behind_other_pods_these_are_named_and_no_time_is() -> None:
    outlook = build_outlook(PodsBefore(7, ["llm/b", "llm/c"], is_current=True), a_forecast(), PROVED, STARTED)
    assert outlook
    assert (outlook.before, outlook.names_before, outlook.earliest) == (7, ["llm/b", "llm/c"], None)
    assert "llm/b, llm/c and 5 more" in outlook.sentence.en
    assert "UTC" not in outlook.sentence.en


def test_a_list_of_waiting_pods_without_the_pod_itself_proves_no_order() -> None:
    outlook = build_outlook(FIRST._replace(is_current=False), a_forecast(), PROVED, STARTED)
    assert outlook
    assert outlook.earliest is None
    assert "not known to be the first" in outlook.sentence.en


def test_an_interval_that_has_passed_is_called_wrong() -> None:
    outlook = build_outlook(FIRST, a_forecast(), PROVED, STARTED + timedelta(hours=3))
    assert outlook
    assert outlook.earliest is None
    assert outlook.sentence.en.startswith("The forecast of its start was wrong")


@pytest.mark.parametrize("missing", ["order", "nodes", "ends", "holds"])
def test_a_missing_interval_is_explained(missing: str) -> None:
    outlook = build_outlook(FIRST, without_interval(missing), ForecastRecord(0, 0), STARTED)
    assert outlook
    assert outlook.sentence.en.startswith("No forecast of its start: ")
    assert ("llm/train-x" in outlook.sentence.en) is (missing == "holds")
    assert "llm/train-x and" not in outlook.sentence.en
    assert outlook.after == []


def test_the_answer_has_the_time_and_the_basis_of_its_forecast() -> None:
    outlook = build_outlook(FIRST, a_forecast(after=[f"llm/p{number}" for number in range(7)]), PROVED, STARTED)
    assert outlook
    assert (outlook.given_at, outlook.basis) == (format_rfc3339(STARTED), "workload")
    assert outlook.after == [f"llm/p{number}" for number in range(5)]
    assert "llm/p4 and 2 more" in outlook.sentence.en
    behind = build_outlook(PodsBefore(1, ["llm/b"], is_current=True), None, PROVED, STARTED)
    assert behind
    assert (behind.given_at, behind.basis, behind.after) == (None, "", [])


def test_without_a_forecast_and_without_pods_before_there_is_no_answer() -> None:
    assert build_outlook(FIRST, None, ForecastRecord(0, 0), STARTED) is None


@pytest.mark.parametrize(
    ("seconds", "expected"), [(3_600, (1, 1)), (7_200, (1, 1)), (3_599, (0, 1)), (7_201, (0, 1)), (-1, (0, 0))]
)
def test_a_start_within_the_interval_is_right_and_one_before_the_forecast_judges_nothing(
    seconds: float, expected: tuple[int, int]
) -> None:
    assert count_right([a_start(seconds, a_forecast())], "workload") == expected


def test_each_basis_has_a_record_of_its_latest_fifty() -> None:
    starts: Sequence[PodPlacement] = [
        *(a_start(3_600, a_forecast()) for _ in range(30)),
        a_start(3_600, a_forecast(basis="shape")),
        *(a_start(60, a_forecast()) for _ in range(40)),
    ]
    assert count_right(starts, "workload") == (30, 50)
    assert count_right(starts, "shape") == (1, 1)
