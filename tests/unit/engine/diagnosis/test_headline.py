"""The first line: only proved changes, the time of the try that the rest is about, and the next best node."""

from typing import Any

import pytest

from engine.diagnosis.headline import add_changes, add_choice
from schemas.answers.comparisons import NodeJudged, PodScores, RunnerUp
from schemas.answers.diagnosis import Diagnosis, DiagnosisEvidence, InBothLanguages, Obstacle
from schemas.answers.suggestions import SuggestedChange, Suggestions

TRIED = "2026-11-24T08:22:00Z"
NOW = "2026-11-24T08:30:00Z"
LACK = "4 of 9 nodes lack compute."
CHANGE = "Lower nvidia.com/gpucores of main from 30 to 25: then it fits on n2."
FITS = "By the devices as they are now the pod fits. The last known try was at 2026-11-24 08:22:00 UTC, 8 min ago."
AT_TRY = f"When it was tried at 2026-11-24 08:22:00 UTC: {LACK}"


def a_text(en: str) -> InBothLanguages:
    return InBothLanguages(en=en, zh="")


def a_diagnosis(layer: Any = "nodes", **fields: Any) -> Diagnosis:
    source = DiagnosisEvidence(kind="attempt", record="f0", at=TRIED, reported_by="", numbers={}, words="")
    obstacle = Obstacle(
        code="CardInsufficientCore", sentence=a_text(LACK), likely_cause=a_text(""), remedy=a_text(""),
        who_acts=["you"], numbers={"nodes": 4, "of_nodes": 9}, nodes=[], evidence=[source],
    )  # fmt: skip
    values = {
        "cluster": "c", "namespace": "ml", "name": "p", "state": "refused", "at": NOW, "attempt": None,
        "headline": a_text(LACK), "sentence": a_text(LACK), "obstacle": obstacle, "other_obstacles": [],
        "layer": layer, "steps": [], "not_known": [],
    }  # fmt: skip
    return Diagnosis.model_validate(values | fields)


def a_suggestion(state: Any, *sentences: str, as_of: str = NOW) -> Suggestions:
    items = [
        SuggestedChange(sentence=a_text(text), who_acts="you", edits=[], cost=1, node="n2", devices=[], fit_nodes=1)
        for text in sentences
    ]
    return Suggestions(
        cluster="c", namespace="ml", name="p", attempt="", as_of=as_of, state=state, items=items, excluded_by=[],
        not_known=[],
    )  # fmt: skip


CHANGED: dict[str, tuple[Suggestions | None, str, str | None]] = {
    "a change that is proved now": (
        a_suggestion("refused", CHANGE, "Another."),
        f"No node that was offered takes the pod as things are. {CHANGE}", AT_TRY,
    ),
    "a change that is proved for the attempt": (
        a_suggestion("refused", CHANGE, as_of=TRIED), f"No node takes the pod as things are. {CHANGE}", LACK,
    ),
    "no proved change": (a_suggestion("refused"), LACK, None),
    "nobody looked for changes": (None, LACK, None),
    "it fits now": (a_suggestion("fits"), FITS, AT_TRY),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGED)
def test_the_headline_has_what_is_proved_now_and_the_background_what_held_before(case: str) -> None:
    suggestions, headline, background = CHANGED[case]
    diagnosis = add_changes(a_diagnosis(), suggestions)
    assert diagnosis.headline.en == headline
    assert (diagnosis.background.en if diagnosis.background else None) == background


@pytest.mark.parametrize("layer", ["queue", "gate", "start", None])
def test_no_change_of_nodes_is_a_headline_where_the_pod_does_not_wait_for_one(layer: str | None) -> None:
    assert add_changes(a_diagnosis(layer), a_suggestion("refused", CHANGE)).headline.en == LACK


UNLOCK = "Remove the lock: then it can be bound to n1."
AFTER_BIND = {
    "it fits, and a lock stops its bind": (a_suggestion("fits", UNLOCK), f"{LACK} {UNLOCK}"),
    "it fits": (a_suggestion("fits"), LACK),
    "its own devices count as taken": (a_suggestion("refused", CHANGE), LACK),
}


@pytest.mark.parametrize("case", AFTER_BIND)
def test_a_bind_that_failed_is_the_headline_with_the_lock_to_remove(case: str) -> None:
    suggestions, headline = AFTER_BIND[case]
    assert add_changes(a_diagnosis("bind"), suggestions).headline.en == headline


def a_score(node: str, score: float) -> NodeJudged:
    return NodeJudged(node=node, verdict="fits", score=score, terms=[], containers=[])


CHOSEN = {
    "binpack": ("binpack", 12.5, 11.58, "binpack chose it before n5, the next best (12.50 > 11.58)."),
    "spread": ("spread", 2.0, 3.0, "spread chose it before n5, the next best (2.00 < 3.00)."),
    "equal": ("binpack", 2.0, 2.0, "binpack chose it before n5, the next best (2.00 = 2.00)."),
    "a source without a policy": ("", 7.5, 4.25, "Its score put it before n5, the next best (7.50 > 4.25)."),
}


@pytest.mark.parametrize("case", CHOSEN)
def test_a_placed_pod_has_the_next_best_node(case: str) -> None:
    policy, score, other, text = CHOSEN[case]
    nodes = [a_score("n9", score), a_score("n5", other)]
    runner_up = RunnerUp(node="n5", score=other, behind=abs(score - other), terms={})
    scores = PodScores(
        attempt_id="f0", attempt="", node_policy=policy, chosen="n9", runner_up=runner_up, nodes=nodes
    )  # fmt: skip
    placed = a_diagnosis(None, state="placed", obstacle=None, sentence=a_text("On n9."), headline=a_text("On n9."))
    assert add_choice(placed, scores).headline.en == f"On n9. {text}"
    alone = scores.model_copy(update={"runner_up": None, "nodes": nodes[:1]})
    assert add_choice(placed, alone).headline.en == "On n9. No other node fitted."
    # A pod that its kubelet can't start has another headline.
    assert add_choice(a_diagnosis("start", state="placed"), scores).headline.en == LACK
