"""The answer about what helps a pod: its state, and what is not known."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.suggestions.answer import NOT_KNOWN, ProvedSuggestions, build_suggestions
from schemas.events import AttemptSummarized

REFUSED = json.loads(Path("tests/contract/golden/io.schedulerlog.attempt.summarized.v1/002.json").read_text())


@pytest.mark.parametrize(
    ("status", "fits", "state"),
    [
        # A pod that has its place needs nothing, whatever would fit now.
        ("succeeded", True, "placed"),
        ("succeeded", False, "placed"),
        ("failed", True, "fits"),
        ("failed", False, "refused"),
        ("pending", False, "refused"),
    ],
)
def test_the_state_is_that_of_the_attempt_and_then_of_the_fit_now(status: Any, fits: bool, state: str) -> None:
    attempt = AttemptSummarized.model_validate(REFUSED).model_copy(update={"status": status})
    proved = ProvedSuggestions([], ["quota"], fits)
    unknown = [*list(NOT_KNOWN)[:2], next(iter(NOT_KNOWN))]
    suggestions = build_suggestions(attempt, "/attempt", datetime(2026, 11, 27, tzinfo=UTC), proved, {}, unknown)
    assert (suggestions.state, suggestions.excluded_by, suggestions.items) == (state, ["quota"], [])
    assert suggestions.not_known == list(NOT_KNOWN.values())[:2]
